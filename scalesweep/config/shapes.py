"""Mesh of ranks, transformer and memory of a point, by a benchmark's expressions; what reads a null
parameter is not known."""

import math
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, StrictBool, create_model

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.model_shape import DTYPES, RECOMPUTE, ModelShape
from scalesweep.config.models import Expr, Model, Short, one_of, read, settled
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

DEVICE = "device_gib"
EXPERTS = "ep"  # an axis that adds no ranks


def value_at(expression: Expression, point: Mapping[str, Any]) -> Any:
    """The value of an expression; None if it reads a null and does not ask for it (``is null``)."""
    if "null" not in expression.text and any(point.get(n) is None for n in expression.names):
        return None
    return expression(point)


class _Gives(NamedTuple):
    """What the value of an expression is, as pydantic's types say it."""

    kind: Any


_Count = Annotated[Expr | None, _Gives(Annotated[int, Field(ge=1)])]
_Flag = Annotated[Expr | None, _Gives(StrictBool)]
_Amount = Annotated[Expr | None, _Gives(Annotated[float, Field(gt=0)])]
_Bytes = Annotated[Expr | None, _Gives(Annotated[float, Field(ge=0)])]


@cache
def _values_of(model: type[Model]) -> type[Model]:
    """The model of what the expressions of a model give."""
    kinds: dict[str, Any] = {
        name: (given.kind, None)
        for name, field in model.model_fields.items()
        for given in field.metadata
        if isinstance(given, _Gives)
    }
    return create_model(f"{model.__name__}Values", __base__=Model, **kinds)


class _Fields(Model):
    """Expressions by the field that each gives."""

    @property
    def fields(self) -> dict[str, Expression]:
        """Those that are given."""
        return {name: value for name, value in self if isinstance(value, Expression)}

    @property
    def texts(self) -> dict[str, str]:
        """The expressions as they are written, as a plan has them."""
        return {name: expression.text for name, expression in self.fields.items()}

    def values_at(self, point: Mapping[str, Any], where: str) -> dict[str, Any]:
        """What is known at a point, by field. Raises UserError for a value that cannot be."""
        values = {name: value_at(of, point) for name, of in self.fields.items() if name != "when"}
        known = {name: value for name, value in values.items() if value is not None}
        key = type(self).__name__.lower()
        return read(_values_of(type(self)), known, where, key).model_dump(exclude_unset=True)


class Mesh(_Fields):
    """Ranks along each axis."""

    SOME: ClassVar[str] = "the ranks along an axis: dp, or dp_replicate and dp_shard; tp, pp, cp"
    dp: _Count = None
    dp_replicate: _Count = None
    dp_shard: _Count = None
    tp: _Count = None
    pp: _Count = None
    cp: _Count = None
    ep: _Count = None

    @property
    def names(self) -> frozenset[str]:
        """The parameters that decide on the mesh."""
        return frozenset({"ranks"}).union(*(ranks.names for ranks in self.fields.values()))

    @property
    def reason(self) -> str:
        """What every point must keep, in words: ``dp x tp x pp must be ranks``."""
        return f"{' x '.join(role for role in self.fields if role != EXPERTS)} must be ranks"

    def at(self, point: Mapping[str, Any]) -> dict[str, int] | None:
        """Ranks by role at a point; None where one of them is not known or is no count."""
        try:
            sizes = self.values_at(point, "")
        except UserError:
            return None
        return sizes if sizes.keys() == self.fields.keys() else None

    def fault(self, point: Mapping[str, Any]) -> str | None:
        """Why a point's ranks make no such mesh; None if they do, or if it is not known."""
        try:
            sizes = self.values_at(point, "")
        except UserError as error:
            return str(error).removeprefix(": ")
        factors = {role: size for role, size in sizes.items() if role != EXPERTS}
        product = math.prod(factors.values())
        if sizes.keys() != self.fields.keys() or product == point["ranks"]:
            return None
        numbers = " x ".join(map(str, factors.values()))
        return f"{' x '.join(factors)} = {numbers} = {product}, not the {point['ranks']} ranks"


class Transformer(_Fields):
    """The shape of the decoder-only transformer that is trained, and of its batch."""

    when: Expr | None = None
    """whether the model is such a transformer; default: always"""
    parameters: _Amount = None
    """trained ones with all embeddings, those used twice counted once"""
    layers: _Count
    """blocks; null where not known"""
    width: _Count
    """values of a token between blocks; null as `layers`"""
    heads: _Count = None
    """heads of the attention"""
    kv_heads: _Count = None
    """heads of keys and values (grouped queries); default: `heads`"""
    ffn_width: _Count = None
    """width of the layers between the attention of two blocks"""
    gated: _Flag = None
    """whether these have a gate, a third matrix (SwiGLU); default: `false`"""
    sequence: _Count
    """tokens of a sample"""
    vocabulary: _Count = None
    """tokens that the model knows"""
    tied: _Flag = None
    """whether the last layer takes the weights of the table of tokens"""
    learned_positions: _Flag = None
    """whether each position of a sample has a learned vector (GPT-2), among the parameters"""
    recompute: Annotated[Expr | None, _Gives(Annotated[str, one_of(RECOMPUTE)])] = None
    """what the backward pass computes again: `none`, `selective` (attention) or `full`"""
    micro_batch: _Count = None
    """samples of a data-parallel rank in a forward pass"""
    accumulation: _Count = None
    """forward passes in a step"""
    global_batch: _Count = None
    """samples of all ranks in a step"""
    dtype: Annotated[Expr | None, _Gives(Annotated[str, one_of(DTYPES)])] = None
    """type of the numbers in products: `float32`, `tf32`, `bfloat16`, `float16` or `float8`"""
    float8_share: Annotated[Expr | None, _Gives(Annotated[float, Field(ge=0, le=1)])] = None
    """share of the FLOP in float8, the others being in bfloat16; without it float8 has no MFU"""
    device: Annotated[Expr | None, _Gives(Annotated[str, one_of(DEVICES)])] = None
    """a rank's [data sheet](../methods/utilisation.md#peaks-of-data-sheets); default: the site's"""

    def at(self, point: Mapping[str, Any], where: str) -> ModelShape | None:
        """The shape at a point; None where the model is none, or its sequence is not known. Raises
        UserError, starting with ``where``, for a value that a field cannot have."""
        if self.when and not value_at(self.when, point):
            return None
        known = self.values_at(point, where)
        return ModelShape(**known) if "sequence" in known else None


class Memory(_Fields):
    """What the memory of a rank depends on besides mesh and transformer."""

    zero: Annotated[Expr | None, _Gives(Annotated[int, Field(ge=0, le=3)])] = None
    """what `dp_shard`, else `dp`, divides: 0 nothing (default), 1 the optimiser's state, 2
    gradients too, 3 weights too (ZeRO, FSDP)"""
    optimizer: Annotated[Expr | None, _Gives(Literal["sgd", "momentum", "adam", "adamw"])] = None
    """`sgd`, `momentum`, `adam` (default) or `adamw`"""
    schedule: Annotated[Expr | None, _Gives(Literal["1f1b", "gpipe", "interleaved"])] = None
    """of the pipeline: `1f1b` (default), `gpipe` or `interleaved`"""
    virtual_stages: _Count = None
    """stages of each rank of an interleaved pipeline"""
    stages: Annotated[Expr | None, _Gives(Literal["even", "balanced"])] = None
    """as many blocks (`even`, default) or operations (`balanced`) on every rank of the pipeline"""
    least_passes: Annotated[Expr | None, _Gives(Literal["one", "stages - 1", "stages"])] = None
    """micro-batches that the schedule needs to start: `one` (default), `stages - 1` or `stages`"""
    sequence_parallel: _Flag = None
    """whether tensor-parallel ranks share what lies between matrices as well; default: `true`"""
    split_vocabulary: _Flag = None
    """whether tensor-parallel ranks share the first and the last layer; default: `true`"""
    weight_bytes: _Bytes = None
    """bytes of a weight; default: by dtype, 4 or 2"""
    gradient_bytes: _Bytes = None
    """bytes of a weight's gradient, with copies of it; default: 4"""
    master_bytes: _Bytes = None
    """bytes of the optimiser's own copy of a weight; default: by dtype, 0 or 4"""
    device_gib: _Amount = None
    """GiB that a rank has; default: as the site's memory of a GPU, else of a node, says"""
    peak: Annotated[tuple[str, ...], Short(str.split, (str,))] = ()
    """the metric that is the measured peak, in bytes; of several the first that runs have"""
    rank: Literal["most", "first", "mean"] = "most"
    """which rank the peak is of: the one with the most, one of the first stage, or the mean"""

    @property
    def texts(self) -> dict[str, str]:
        """All of it as texts; the peaks with spaces between."""
        return {**super().texts, "peak": " ".join(self.peak), "rank": self.rank}


class Shapes(Model):
    """What a benchmark, a table or a plan declares of its points."""

    mesh: Mesh | None = None
    transformer: Transformer | None = None
    memory: Memory | None = None


def load_shapes(content: Mapping[str, Any], known: Collection[str], path: Path) -> Shapes:
    """What a file declares. Raises UserError."""
    return settled(read(Shapes, content, path), f"{path}: ", known)
