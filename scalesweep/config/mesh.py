"""The mesh of ranks that a benchmark declares: its axes, and the ranks along each at a point."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of

# What the ranks of an axis share: copies of the model, shards of one, or both (dp); layers by
# columns and rows; layers in a row; the tokens of a sample; experts.
ROLES = ("dp", "dp_replicate", "dp_shard", "tp", "pp", "cp", "ep")
EXPERTS = "ep"  # it lies inside the data-parallel axes and cp, and adds no ranks
_DATA = ("dp", "dp_replicate", "dp_shard")
_AROUND_EXPERTS = (*_DATA, "cp")
_RANKS = "ranks"


def value_at(expression: Expression, point: Mapping[str, Any]) -> Any:
    """The value of an expression; None where it reads what is not known (null) without asking for
    that itself (``x is null``)."""
    if "null" not in expression.text and any(point.get(n) is None for n in expression.names):
        return None
    return expression(point)


@dataclass(frozen=True)
class Mesh:
    """Axes of a mesh in the order of their declaration: the ranks of each, by role."""

    axes: Mapping[str, Expression]

    @property
    def texts(self) -> dict[str, str]:
        """The expressions as they are written, by role."""
        return {role: ranks.text for role, ranks in self.axes.items()}

    @property
    def names(self) -> frozenset[str]:
        """The parameters that decide on the mesh."""
        return frozenset({_RANKS}).union(*(ranks.names for ranks in self.axes.values()))

    @property
    def product(self) -> str:
        """The axes that make up the ranks, in words: ``dp x tp x pp``."""
        return " x ".join(role for role in self.axes if role != EXPERTS)

    def at(self, point: Mapping[str, Any]) -> dict[str, int] | None:
        """Ranks by role at a point; None where one of them is not known or is no count."""
        sizes = self._sizes(point)
        if any(not _is_count(size) for size in sizes.values()):
            return None
        return {role: int(size) for role, size in sizes.items()}

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
        if (product := math.prod(factors.values())) != point[_RANKS]:
            numbers = " x ".join(map(str, factors.values()))
            return f"{self.product} = {numbers} = {product}, not the {point[_RANKS]} ranks"
        around = math.prod(factors.get(role, 1) for role in _AROUND_EXPERTS)
        if around % int(sizes.get(EXPERTS, 1)):
            return f"{EXPERTS} = {sizes[EXPERTS]} does not divide {self._around} = {around}"
        return None

    @property
    def rule(self) -> str:
        """What every point must keep, in words."""
        rule = f"{self.product} must be ranks"
        return f"{rule}, and {EXPERTS} divide {self._around}" if EXPERTS in self.axes else rule

    @property
    def _around(self) -> str:
        return " x ".join(role for role in self.axes if role in _AROUND_EXPERTS)

    def _sizes(self, point: Mapping[str, Any]) -> dict[str, Any]:
        return {role: value_at(ranks, point) for role, ranks in self.axes.items()}


def _is_count(value: Any) -> bool:
    """Whether a value is a whole number of 1 or more."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and value >= 1
        and float(value).is_integer()
    )


def load_mesh(
    content: Sequence[str | Mapping[str, str]], known: Mapping[str, Any], where: str
) -> Mesh:
    """The mesh that a file declares; ``where``: file and key. Raises UserError for roles twice, or
    that contradict each other, and for unknown parameters."""
    axes: dict[str, Expression] = {}
    for index, entry in enumerate(content):
        role, text = (entry, entry) if isinstance(entry, str) else (entry["role"], entry["ranks"])
        here = f"{where}[{index}]"
        if role not in ROLES:
            raise UserError(f"{here}: {role!r} is no role; allowed: {', '.join(ROLES)}")
        if role in axes:
            raise UserError(f"{here}: {role} is there already; name each role once")
        axes[role] = Expression(text, here).check_names(set(known))
    if "dp" in axes and len(axes.keys() & set(_DATA)) > 1:
        raise UserError(f"{where}: dp is dp_replicate and dp_shard together; name it or these")
    if EXPERTS in axes and not axes.keys() & set(_AROUND_EXPERTS):
        raise UserError(
            f"{where}: ep lies inside the data-parallel axes and cp; name one of "
            + ", ".join(_AROUND_EXPERTS)
        )
    if not axes.keys() - {EXPERTS}:
        raise UserError(f"{where}: name an axis that ranks lie along")
    return Mesh(axes)


@lru_cache(maxsize=256)
def _written(axes: tuple[tuple[str, str], ...]) -> Mesh:
    return Mesh({role: Expression(text, f"{role} of the mesh") for role, text in axes})


def mesh_of_texts(texts: Mapping[str, str]) -> Mesh:
    """The mesh of ``Mesh.texts``, as a plan has it."""
    return _written(tuple(texts.items()))
