"""What a draft of a map says of layouts: the mesh of ranks, and what follows from other columns."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from scalesweep.config.formula import alias
from scalesweep.config.mesh import ROLES
from scalesweep.importers.table_file import Row, Table

_DATA = ("dp", "dp_replicate", "dp_shard")
_INSIDE = "ep"  # adds no ranks
_MODEL = re.compile(r"model(?:_name|_size)?|network")
_GLOBAL = re.compile(r"gbs|global_batch(?:_size)?")
_MICRO = re.compile(r"mbs|micro_?batch(?:_size)?")
_ACCUMULATION = re.compile(r"ga|grad_?acc(?:um(?:ulation)?)?(?:_steps)?|accumulation(?:_steps)?")
_MEMORY = re.compile(r"(?=.*mem).*_([kMGT]i?B)", re.IGNORECASE)
# What must hold in so many rows to be taken for a rule: those that break it are refused.
_MOST = 0.9

_Numbers = Callable[[Row, str], float | None]


def add_layouts(content: dict[str, Any], table: Table) -> None:
    """Complete a draft whose columns name a mesh: ``content`` as a map's YAML has it."""
    parameters: dict[str, Any] = content["parameters"]
    roles = [role for role in ROLES if "column" in parameters.get(role, {})]
    ranks = parameters["ranks"].get("column")
    if ranks is None or not set(_DATA) & set(roles) or len(roles) < 2:
        return

    def number(row: Row, name: str) -> float | None:
        try:
            return table.number(row.cells[parameters[name]["column"]])
        except ValueError:
            return None

    factors = [role for role in roles if role != _INSIDE]
    each = _common(table.rows, lambda row: _ratio(number, row, factors))
    if each is None or each < 1 or not each.is_integer():
        return
    content["mesh"] = roles
    others = [role for role in factors if role != "dp"]
    if "dp" in factors and others:
        parameters["dp"]["derive"] = f"ranks // ({' * '.join(others)})"
    for name, entry in parameters.items():
        if _MODEL.fullmatch(name) or _GLOBAL.fullmatch(name):
            entry["workload"] = True
    _add_accumulation(parameters, table.rows, factors, number)
    if each > 1:
        if content.pop("scale", "") == "nodes":
            parameters["ranks_per_node"] = {"value": int(each)}
        parameters["ranks"] = {"formula": f"{int(each)} * {alias(ranks)}"}
    _add_memory(content)


def _ratio(number: _Numbers, row: Row, factors: Sequence[str]) -> float | None:
    """The ranks of a row's mesh over what its table counts."""
    sizes = [number(row, name) for name in ("ranks", *factors)]
    known = [size for size in sizes if size]
    return prod(known[1:]) / known[0] if len(known) == len(sizes) else None


def _common(rows: Sequence[Row], value: Callable[[Row], float | None]) -> float | None:
    """The value of nearly all rows; None where they differ, or none has any."""
    counts = Counter(number for row in rows if (number := value(row)) is not None)
    if not counts:
        return None
    most, count = counts.most_common(1)[0]
    return most if count >= _MOST * counts.total() else None


def _add_accumulation(
    parameters: dict[str, Any], rows: Sequence[Row], factors: Sequence[str], number: _Numbers
) -> None:
    """Derive the accumulation from the global batch, where nearly all rows agree."""
    micro, steps, batch = (
        next((name for name in parameters if pattern.fullmatch(name)), None)
        for pattern in (_MICRO, _ACCUMULATION, _GLOBAL)
    )
    data = [role for role in factors if role in _DATA]
    if micro is None or steps is None or batch is None:
        return

    def over(row: Row) -> float | None:
        sizes = [number(row, name) for name in (batch, micro, steps, *data)]
        known = [size for size in sizes if size]
        return known[0] / prod(known[1:]) if len(known) == len(sizes) else None

    if _common(rows, over) == 1:
        parameters[steps]["derive"] = f"{batch} / ({' * '.join([micro, *data])})"


def _add_memory(content: dict[str, Any]) -> None:
    """Make a metric of columns that name memory and its unit."""
    for column in list(content.get("ignore", ())):
        if named := _MEMORY.fullmatch(alias(column)):
            unit = next(unit for unit in _UNITS if unit.lower() == named[1].lower())
            entry = {"column": column, "unit": unit, "better": "lower", "scope": "rank"}
            content["metrics"][alias(column).lower()] = entry
            content["ignore"].remove(column)
    if not content.get("ignore", True):
        del content["ignore"]


_UNITS: Sequence[str] = ("kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")
