"""The memory of a point's ranks by the model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.shapes import DEVICE, Memory, Shapes
from scalesweep.config.site import Site
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of

if TYPE_CHECKING:
    from scalesweep.analysis.memory_model import MemoryLayout
    from scalesweep.analysis.types import Floats

GIB = 2**30


class PointMemory(NamedTuple):
    """Bytes of a point's ranks by stage and part (``memory_model.rank_bytes``), and of a rank's
    device, None where that is not known; ``obstacle``: what keeps a run from starting whatever
    memory there is (``memory_model.obstacle``)."""

    parts: "Floats"
    device: float | None
    obstacle: str


def memory_layout(
    of: Shapes | Benchmark, point: Mapping[str, Any], where: str
) -> "tuple[ModelShape, MemoryLayout, float | None] | str | None":
    """Model and layout of a point, and bytes of a rank's device, as far as memory depends on them;
    what must be known and is not, in words; None where no transformer is trained.

    Raises UserError, starting with ``where``, for a value that cannot be.
    """
    # Not at the top: the Snakefile is parsed with this module, and few campaigns need it.
    from scalesweep.analysis.memory_model import MemoryLayout, unknown_of

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
    layout = MemoryLayout(
        shards=sizes.get("dp_shard", sizes.get("dp", 1)),
        tp=sizes.get("tp", 1),
        pp=sizes.get("pp", 1),
        cp=sizes.get("cp", 1),
        passes=shape.accumulation or 1,
        **values,
    )
    return shape, layout, None if device is None else device * GIB


def point_memory(
    of: Shapes | Benchmark, point: Mapping[str, Any], where: str
) -> PointMemory | str | None:
    """The bytes of a point; else as ``memory_layout``."""
    known = memory_layout(of, point, where)
    if not isinstance(known, tuple):
        return known
    from scalesweep.analysis.memory_model import obstacle, rank_bytes

    shape, layout, device = known
    return PointMemory(rank_bytes(shape, layout), device, obstacle(shape, layout))


def memory_on(
    benchmark: Benchmark, site: Site, memory_gib_per_rank: float | None = None
) -> Memory | None:
    """What a benchmark declares of its memory, with the device that its ranks have on a site.

    A GPU where the benchmark takes them and the site has them; else what a rank is given of the
    host's memory: ``memory_gib_per_rank``, or its share of a node.
    """
    memory = benchmark.memory
    if memory is None or memory.device_gib is not None:
        return memory
    if benchmark.gpus is not None and site.gpus_per_node:
        gib, share = site.memory_gib_per_gpu, ""
    elif memory_gib_per_rank is not None or site.memory_gib_per_node is None:
        gib, share = memory_gib_per_rank, ""
    else:
        gib = site.memory_gib_per_node
        share = " / (ranks if ranks < ranks_per_node else ranks_per_node)"
    if gib is None:
        return memory
    return memory.model_copy(update={DEVICE: Expression(f"{text_of(gib)}{share}", DEVICE)})
