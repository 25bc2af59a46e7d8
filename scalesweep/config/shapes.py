"""Mesh of ranks, transformer and memory of a point: what a benchmark's expressions give.

A plan has the same expressions as texts (``planned_*``). What reads a null parameter is not known.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.model_shape import DTYPES, RECOMPUTE, ModelShape
from scalesweep.config.models import FILLED, Expr, Made, Model, Short, read, settled
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import PlanExperiment

DEVICE = "device_gib"
EXPERTS = "ep"  # an axis that adds no ranks
_AROUND_EXPERTS = ("dp", "dp_replicate", "dp_shard", "cp")
# What a field of model or memory may be; all others are numbers.
_WORDS: dict[str, Iterable[str]] = {
    "recompute": RECOMPUTE, "dtype": DTYPES, "device": DEVICES,
    "schedule": ("1f1b", "gpipe", "interleaved"), "stages": ("even", "balanced"),
    "least_passes": ("one", "stages - 1", "stages"),
    "optimizer": ("sgd", "momentum", "adam", "adamw"),
}  # fmt: skip
_FLAGS = ("gated", "tied", "learned_positions", "sequence_parallel", "split_vocabulary")
_WHOLE = (
    "sequence", "layers", "width", "heads", "kv_heads", "ffn_width", "vocabulary", "micro_batch",
    "accumulation", "global_batch", "zero", "virtual_stages",
)  # fmt: skip
_BOUNDS = {
    "float8_share": (0, 1), "zero": (0, 3), "virtual_stages": (1, 1000),
    "weight_bytes": (0, 1e6), "gradient_bytes": (0, 1e6), "master_bytes": (0, 1e6),
}  # fmt: skip


def value_at(expression: Expression, point: Mapping[str, Any]) -> Any:
    """The value of an expression; None where it reads what is not known (null) without asking for
    that itself (``x is null``)."""
    if "null" not in expression.text and any(point.get(n) is None for n in expression.names):
        return None
    return expression(point)


def _checked(name: str, value: Any, key: str) -> Any:
    """A value as its field has it; raises UserError that begins with ``key``."""
    key = f"{key}.{name}: "
    if name in _WORDS:
        if value not in _WORDS[name]:
            raise UserError(f"{key}{choices(value, _WORDS[name])}, not {text_of(value)}")
        return value
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise UserError(f"{key}must be true or false, not {text_of(value)}")
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    whole, bounds = name in _WHOLE, _BOUNDS.get(name)
    inside = number and (bounds[0] <= value <= bounds[1] if bounds else value > 0)
    if not inside or (whole and not float(value).is_integer()):
        kind = "a whole number" if whole else "a number"
        amount = f"{bounds[0]:g} to {bounds[1]:g}" if bounds else "above 0"
        raise UserError(f"{key}must be {kind} {amount}, not {text_of(value)}")
    return int(value) if whole else float(value)


class _Fields(Model):
    """Expressions by the field that each gives."""

    @property
    def fields(self) -> dict[str, Expression]:
        """Those that are given."""
        return dict(self.expressions())

    @property
    def texts(self) -> dict[str, str]:
        """The expressions as they are written, as a plan has them."""
        return {name: expression.text for name, expression in self.fields.items()}

    def _at(self, point: Mapping[str, Any], where: str) -> dict[str, Any]:
        """What is known at a point, by field. Raises UserError for a value that cannot be."""
        values = {name: value_at(of, point) for name, of in self.fields.items() if name != "when"}
        return {name: _checked(name, v, where) for name, v in values.items() if v is not None}


class _Axis(Model):
    """An axis of the mesh of ranks."""

    FORM: ClassVar[str] = "a role, or {role: ROLE, ranks: EXPRESSION}"
    role: Literal["dp", "dp_replicate", "dp_shard", "tp", "pp", "cp", "ep"]
    ranks: Expr


_AxisOrRole = Annotated[_Axis, Short(lambda role: {"role": role, "ranks": role}, (str,))]


@dataclass(frozen=True)
class Mesh(Made):
    """Ranks along each axis by role, in the order of their declaration."""

    SOURCE = Annotated[tuple[_AxisOrRole, ...], FILLED]
    fields: Mapping[str, Expression]

    @classmethod
    def of(cls, given: Sequence[_Axis]) -> "Mesh":
        """That of a file; raises ValueError for roles twice, or that contradict each other."""
        mesh = cls({axis.role: axis.ranks for axis in given})
        if len(mesh.fields) < len(given):
            raise ValueError("name each role once")
        if "dp" in mesh.fields and {"dp_replicate", "dp_shard"} & mesh.fields.keys():
            raise ValueError("dp is dp_replicate and dp_shard together; name it or these")
        if EXPERTS in mesh.fields and not mesh.fields.keys() & set(_AROUND_EXPERTS):
            around = ", ".join(_AROUND_EXPERTS)
            raise ValueError(f"ep lies inside the data-parallel axes and cp; name one of {around}")
        return mesh

    def expressions(self, place: str) -> Iterator[tuple[str, Expression]]:
        """The ranks of each axis, with their key."""
        yield from ((f"{place}{role}", ranks) for role, ranks in self.fields.items())

    @property
    def texts(self) -> dict[str, str]:
        """The expressions as they are written, by role."""
        return {role: ranks.text for role, ranks in self.fields.items()}

    @property
    def names(self) -> frozenset[str]:
        """The parameters that decide on the mesh."""
        return frozenset({"ranks"}).union(*(ranks.names for ranks in self.fields.values()))

    @property
    def product(self) -> str:
        """The axes that make up the ranks, in words: ``dp x tp x pp``."""
        return " x ".join(role for role in self.fields if role != EXPERTS)

    @property
    def reason(self) -> str:
        """What every point must keep, in words."""
        rule = f"{self.product} must be ranks"
        return f"{rule}, and {EXPERTS} divide {self._around}" if EXPERTS in self.fields else rule

    @property
    def _around(self) -> str:
        return " x ".join(role for role in self.fields if role in _AROUND_EXPERTS)

    def at(self, point: Mapping[str, Any]) -> dict[str, int] | None:
        """Ranks by role at a point; None where one of them is not known or is no count."""
        sizes = self._sizes(point)
        return (
            {r: int(n) for r, n in sizes.items()} if all(map(_is_count, sizes.values())) else None
        )

    def fault(self, point: Mapping[str, Any]) -> str | None:
        """Why a point's ranks make no such mesh, with its numbers; None where they do, or where it
        is not known."""
        sizes = self._sizes(point)
        for role, size in sizes.items():
            if size is not None and not _is_count(size):
                return f"{role} = {text_of(size)} is not a whole number of 1 or more ranks"
        if None in sizes.values():
            return None
        factors = {role: int(size) for role, size in sizes.items() if role != EXPERTS}
        if (product := math.prod(factors.values())) != point["ranks"]:
            numbers = " x ".join(map(str, factors.values()))
            return f"{self.product} = {numbers} = {product}, not the {point['ranks']} ranks"
        around = math.prod(factors.get(role, 1) for role in _AROUND_EXPERTS)
        if around % int(sizes.get(EXPERTS, 1)):
            return f"{EXPERTS} = {sizes[EXPERTS]} does not divide {self._around} = {around}"
        return None

    def _sizes(self, point: Mapping[str, Any]) -> dict[str, Any]:
        return {role: value_at(ranks, point) for role, ranks in self.fields.items()}


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and value >= 1 and float(value).is_integer()


class Transformer(_Fields):
    """The shape of the decoder-only transformer that is trained, and of its batch."""

    when: Expr | None = None
    """whether the model is such a transformer; default: always"""
    parameters: Expr | None = None
    """trained parameters with all embeddings, those used twice counted once"""
    layers: Expr
    """blocks; null where not known: what needs none follows still"""
    width: Expr
    """values of a token between blocks; null as `layers`"""
    heads: Expr | None = None
    """heads of the attention"""
    kv_heads: Expr | None = None
    """heads of keys and values (grouped queries); default: `heads`"""
    ffn_width: Expr | None = None
    """width of the layers between the attention of two blocks"""
    gated: Expr | None = None
    """whether these have a gate, a third matrix (SwiGLU); default: `false`"""
    sequence: Expr
    """tokens of a sample"""
    vocabulary: Expr | None = None
    """tokens that the model knows"""
    tied: Expr | None = None
    """whether the last layer takes the weights of the table of tokens"""
    learned_positions: Expr | None = None
    """whether each position of a sample has a learned vector (GPT-2, MPT), among the parameters"""
    recompute: Expr | None = None
    """`none`, `selective` (attention) or `full`: what of the forward pass the backward pass
    computes again"""
    micro_batch: Expr | None = None
    """samples of a data-parallel rank in a forward pass"""
    accumulation: Expr | None = None
    """forward passes in a step"""
    global_batch: Expr | None = None
    """samples of all ranks in a step"""
    dtype: Expr | None = None
    """type of the numbers in products: `float32`, `tf32`, `bfloat16`, `float16` or `float8`"""
    float8_share: Expr | None = None
    """share of the FLOP in float8, the others being in bfloat16; without it float8 has no MFU,
    because two peaks mix"""
    device: Expr | None = None
    """what a rank computes on, a name of the
    [data sheets](../methods/utilisation.md#peaks-of-data-sheets); default: the site's peaks"""

    def at(self, point: Mapping[str, Any], where: str) -> ModelShape | None:
        """The shape at a point; None where the model is none, or its sequence is not known.

        Raises UserError, starting with ``where``, for a value that a field cannot have.
        """
        if self.when and not value_at(self.when, point):
            return None
        known = self._at(point, f"{where}: transformer")
        return ModelShape(**known) if "sequence" in known else None


class Memory(_Fields):
    """What the memory of a rank depends on besides mesh and transformer."""

    zero: Expr | None = None
    """what the data-parallel ranks of a shard (`dp_shard`, else `dp`) divide: 0 nothing (default),
    1 the optimiser's state, 2 gradients too, 3 weights too (ZeRO, FSDP)"""
    optimizer: Expr | None = None
    """`sgd`, `momentum`, `adam` (default) or `adamw`"""
    schedule: Expr | None = None
    """of the pipeline: `1f1b` (default), `gpipe` or `interleaved`"""
    virtual_stages: Expr | None = None
    """stages of each rank of an interleaved pipeline"""
    stages: Expr | None = None
    """`even` (default): as many blocks on every rank of the pipeline; `balanced`: as many
    operations, with those of the last layer (nanotron)"""
    least_passes: Expr | None = None
    """micro-batches that a step must have for the schedule to start: `one` (default), `stages - 1`
    (1F1B of nanotron) or `stages` (1F1B of torch.distributed.pipelining)"""
    sequence_parallel: Expr | None = None
    """whether tensor-parallel ranks share what lies between the matrices of a block as well;
    default: `true`"""
    split_vocabulary: Expr | None = None
    """whether tensor-parallel ranks share the first and the last layer; default: `true`"""
    weight_bytes: Expr | None = None
    """bytes of a weight; default: by dtype, 4 or 2"""
    gradient_bytes: Expr | None = None
    """bytes of a weight's gradient, with copies of it; default: 4"""
    master_bytes: Expr | None = None
    """bytes of the weight that the optimiser updates, where that is a copy; default: by dtype, 0
    or 4"""
    device_gib: Expr | None = None
    """GiB that a rank has, where that is not the site's `memory_gib_per_gpu`; without GPUs
    `memory_gib_per_rank`, or `memory_gib_per_node` over the ranks of a node"""
    peak: Annotated[tuple[str, ...], Short(str.split, (str,))] = ()
    """the metric that is the measured peak, in bytes; of several the first that runs have"""
    rank: Literal["most", "first", "mean"] = "most"
    """which rank the peak is of: the one with the most, one of the first stage, or the mean"""

    @property
    def texts(self) -> dict[str, str]:
        """All of it as texts; the peaks with spaces between."""
        return {**super().texts, "peak": " ".join(self.peak), "rank": self.rank}

    def on(self, device: str | None) -> "Memory":
        """The same on devices of so many GiB, an expression, where it does not say itself."""
        if device is None or self.device_gib is not None:
            return self
        return self.model_copy(update={DEVICE: Expression(device, DEVICE)})

    def at(self, point: Mapping[str, Any], where: str) -> dict[str, Any]:
        """What is known of the fields of ``MemoryLayout`` at a point, and ``device_gib``."""
        return self._at(point, f"{where}: memory")


class Shapes(Model):
    """What a benchmark, a table or a plan declares of its points."""

    mesh: Mesh | None = None
    transformer: Transformer | None = None
    memory: Memory | None = None


def load_shapes(content: Mapping[str, Any], known: Collection[str], path: Path) -> Shapes:
    """What a file declares. Raises UserError."""
    return settled(read(Shapes, content, path), f"{path}: ", known)


@lru_cache(maxsize=256)
def _of_texts(*parts: tuple[tuple[str, str], ...]) -> Shapes:
    mesh, transformer, memory = map(dict, parts)
    axes = [{"role": role, "ranks": ranks} for role, ranks in mesh.items()]
    content = {"mesh": axes or None, "transformer": transformer or None, "memory": memory or None}
    return settled(Shapes.model_validate(content), "")


def planned(experiment: PlanExperiment) -> Shapes:
    """What an experiment of a plan has as texts."""
    parts: list[Any] = [experiment.get(key, {}) for key in ("mesh", "transformer", "memory")]
    return _of_texts(*(tuple(texts.items()) for texts in parts))


def planned_mesh(experiment: PlanExperiment, point: Mapping[str, Any]) -> dict[str, int] | None:
    """Ranks by role of a point of a plan with all its parameters; None where not known."""
    mesh = planned(experiment).mesh
    return mesh.at(point) if mesh else None


def planned_shape(experiment: PlanExperiment, point: Mapping[str, Any]) -> ModelShape | None:
    """The transformer that a point of a plan trains; None where it is none, or not known."""
    model = planned(experiment).transformer
    return model.at(point, experiment["benchmark"]) if model else None
