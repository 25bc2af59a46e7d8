"""What a benchmark declares of its memory, and the bytes that a point needs and has."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from scalesweep.config.mesh import Mesh, mesh_of_texts, value_at
from scalesweep.config.transformer import Transformer, transformer_of_texts
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import PlanExperiment

if TYPE_CHECKING:
    from scalesweep.analysis.memory_model import MemoryLayout
    from scalesweep.analysis.model_shape import ModelShape
    from scalesweep.analysis.types import Floats

GIB = 2**30
DEVICE = "device_gib"
RANKS = ("most", "first", "mean")
_WORDS = {
    "schedule": ("1f1b", "gpipe", "interleaved"),
    "stages": ("even", "balanced"),
    "least_passes": ("one", "stages - 1", "stages"),
    "optimizer": ("sgd", "momentum", "adam", "adamw"),
}
_FLAGS = ("sequence_parallel", "split_vocabulary")
_COUNTS = {"zero": (0, 3), "virtual_stages": (1, 1000)}
_PLAIN = ("peak", "rank")


@dataclass(frozen=True)
class Memory:
    """Expressions by the field of ``MemoryLayout`` that they give, or ``device_gib``.

    ``peaks``: metrics that are a measured peak, the first that runs have counts; ``rank``: which
    rank they are of, one of ``RANKS``.
    """

    fields: Mapping[str, Expression]
    peaks: tuple[str, ...]
    rank: str

    @property
    def texts(self) -> dict[str, str]:
        """All of it as texts; the peaks with spaces between."""
        texts = {name: expression.text for name, expression in self.fields.items()}
        return texts | {"peak": " ".join(self.peaks), "rank": self.rank}

    @property
    def declared(self) -> dict[str, Any]:
        """The same as benchmark.yaml has it."""
        texts: dict[str, Any] = {name: of.text for name, of in self.fields.items()}
        return texts | ({"peak": list(self.peaks)} if self.peaks else {}) | {"rank": self.rank}

    def on(self, device: str | None) -> "Memory":
        """The same on devices of so many GiB, an expression, where it does not say itself."""
        if device is None or DEVICE in self.fields:
            return self
        return replace(self, fields={**self.fields, DEVICE: Expression(device, DEVICE)})


class PointMemory(NamedTuple):
    """Bytes of a point's ranks by stage and part (``memory_model.rank_bytes``), and of a rank's
    device, None where that is not known; ``obstacle``: what keeps a run from starting whatever
    memory there is (``memory_model.obstacle``)."""

    parts: "Floats"
    device: float | None
    obstacle: str


def load_memory(content: Mapping[str, Any], known: Mapping[str, Any], where: str) -> Memory:
    """What a file declares; ``where``: file and key. Raises UserError."""
    peak = content.get("peak", ())
    return Memory(
        {
            name: Expression(str(text), f"{where}.{name}").check_names(set(known))
            for name, text in content.items()
            if name not in _PLAIN
        },
        (peak,) if isinstance(peak, str) else tuple(peak),
        content.get("rank", RANKS[0]),
    )


@lru_cache(maxsize=256)
def _written(texts: tuple[tuple[str, str], ...]) -> Memory:
    content = dict(texts)
    fields = {
        name: Expression(text, f"memory.{name}")
        for name, text in content.items()
        if name not in _PLAIN
    }
    return Memory(fields, tuple(content["peak"].split()), content["rank"])


def planned_memory(experiment: PlanExperiment) -> Memory | None:
    """What an experiment of a plan says of its memory; None where it does not."""
    return _written(tuple(experiment["memory"].items())) if "memory" in experiment else None


def planned_point_memory(
    experiment: PlanExperiment, point: Mapping[str, Any]
) -> PointMemory | str | None:
    """The same as ``point_memory``, of a point of a plan with all its parameters."""
    return _bytes_of(planned_memory_layout(experiment, point))


def planned_memory_layout(
    experiment: PlanExperiment, point: Mapping[str, Any]
) -> "tuple[ModelShape, MemoryLayout, float | None] | str | None":
    """The same as ``memory_layout``, of a point of a plan with all its parameters."""
    memory = planned_memory(experiment)
    if memory is None or "transformer" not in experiment:
        return None
    transformer = transformer_of_texts(experiment["transformer"])
    mesh = mesh_of_texts(experiment["mesh"]) if "mesh" in experiment else None
    return memory_layout(memory, transformer, mesh, point, experiment["benchmark"])


def point_memory(
    memory: Memory,
    transformer: Transformer,
    mesh: Mesh | None,
    point: Mapping[str, Any],
    where: str,
) -> PointMemory | str | None:
    """The bytes of a point; what must be known and is not, in words; None where no transformer is
    trained. Raises UserError, starting with ``where``, for a value that cannot be."""
    return _bytes_of(memory_layout(memory, transformer, mesh, point, where))


def _bytes_of(
    known: "tuple[ModelShape, MemoryLayout, float | None] | str | None",
) -> PointMemory | str | None:
    """The bytes of a layout of ``memory_layout``, or why they are not known."""
    if not isinstance(known, tuple):
        return known
    # Not at the top: the Snakefile is parsed with this module, and few campaigns need it.
    from scalesweep.analysis.memory_model import obstacle, rank_bytes

    shape, layout, device = known
    return PointMemory(rank_bytes(shape, layout), device, obstacle(shape, layout))


def memory_layout(
    memory: Memory,
    transformer: Transformer,
    mesh: Mesh | None,
    point: Mapping[str, Any],
    where: str,
) -> "tuple[ModelShape, MemoryLayout, float | None] | str | None":
    """The model and the layout of a point, and bytes of a rank's device, as far as memory depends
    on them; else as ``point_memory``."""
    from scalesweep.analysis.memory_model import MemoryLayout, unknown_of

    shape = transformer.at(point, where)
    if shape is None:
        return None
    sizes = mesh.at(point) if mesh else {}
    if sizes is None:
        return "the mesh"
    values: dict[str, Any] = {}
    for name, expression in memory.fields.items():
        value = value_at(expression, point)
        if value is not None:
            values[name] = _checked(name, value, f"{where}: memory.{name}")
    device = values.pop(DEVICE, None)
    passes = shape.accumulation
    missing = unknown_of(shape)
    if passes is None and sizes.get("pp", 1) > 1:
        missing = ", ".join(filter(None, (missing, "accumulation")))
    if values.get("zero") and not {"dp", "dp_shard"} & sizes.keys():
        missing = ", ".join(filter(None, (missing, "dp_shard")))
    if missing:
        return missing
    layout = MemoryLayout(
        shards=sizes.get("dp_shard", sizes.get("dp", 1)),
        tp=sizes.get("tp", 1),
        pp=sizes.get("pp", 1),
        cp=sizes.get("cp", 1),
        passes=passes or 1,
        **values,
    )
    return shape, layout, None if device is None else device * GIB


def _checked(name: str, value: Any, key: str) -> Any:
    """A value as ``MemoryLayout`` has it. Raises UserError."""
    if name in _WORDS:
        if value not in _WORDS[name]:
            raise UserError(f"{key}: {choices(str(value), _WORDS[name])}, not {text_of(value)}")
        return value
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise UserError(f"{key}: must be true or false, not {text_of(value)}")
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _COUNTS:
        low, high = _COUNTS[name]
        if not number or not low <= value <= high or value != int(value):
            raise UserError(f"{key}: must be {low} to {high}, not {text_of(value)}")
        return int(value)
    if not number or not 0 <= value < float("inf") or (name == DEVICE and not value):
        raise UserError(f"{key}: must be a number above 0, not {text_of(value)}")
    return float(value)
