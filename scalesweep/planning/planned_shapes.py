"""Mesh, transformer and memory of the points of a plan, which has their expressions as texts."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from scalesweep.analysis.memory_model import MemoryLayout, obstacle, rank_bytes, unknown_of
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.types import Floats
from scalesweep.config.models import settled
from scalesweep.config.shapes import DEVICE, Shapes
from scalesweep.core.plan_format import PlanExperiment

GIB = 2**30


@lru_cache(maxsize=256)
def _of_text(text: str) -> Shapes:
    return settled(Shapes.model_validate(json.loads(text)), "")


def planned(experiment: PlanExperiment) -> Shapes:
    """What an experiment of a plan has as texts."""
    return _of_text(json.dumps({key: experiment.get(key) or None for key in Shapes.model_fields}))


def planned_shape(experiment: PlanExperiment, point: Mapping[str, Any]) -> ModelShape | None:
    """The transformer that a point of a plan trains; None where it is none, or not known."""
    model = planned(experiment).transformer
    return model.at(point, experiment["benchmark"]) if model else None


class PointMemory(NamedTuple):
    """Bytes of a point's ranks by stage and part (``memory_model.rank_bytes``), and of a rank's
    device, if known; ``obstacle``: what keeps a run from starting whatever memory there is."""

    parts: Floats
    device: float | None
    obstacle: str


def memory_layout(
    of: Shapes, point: Mapping[str, Any], where: str
) -> tuple[ModelShape, MemoryLayout, float | None] | str | None:
    """Model and layout of a point, and bytes of a rank's device, as far as memory depends on them;
    what must be known and is not, in words; None where no transformer is trained. Raises UserError,
    starting with ``where``, for a value that cannot be."""
    shape = of.transformer.at(point, where) if of.transformer else None
    if shape is None or of.memory is None:
        return None
    sizes = of.mesh.at(point) if of.mesh else {}
    if sizes is None:
        return "the mesh"
    values = of.memory.values_at(point, where)
    device = values.pop(DEVICE, None)
    missing = [unknown_of(shape)]
    if shape.accumulation is None and sizes.get("pp", 1) > 1:
        missing.append("accumulation")
    if values.get("zero") and not {"dp", "dp_shard"} & sizes.keys():
        missing.append("dp_shard")
    if any(missing):
        return ", ".join(filter(None, missing))
    values |= {axis: sizes.get(axis, 1) for axis in ("tp", "pp", "cp")}
    shards = sizes.get("dp_shard", sizes.get("dp", 1))
    layout = MemoryLayout(shards=shards, passes=shape.accumulation or 1, **values)
    return shape, layout, None if device is None else device * GIB


def point_memory(of: Shapes, point: Mapping[str, Any], where: str) -> PointMemory | str | None:
    """The bytes of a point; else as ``memory_layout``."""
    known = memory_layout(of, point, where)
    if not isinstance(known, tuple):
        return known
    shape, layout, device = known
    return PointMemory(rank_bytes(shape, layout), device, obstacle(shape, layout))
