"""A table as a class whose fields are its columns.

    @dataclass(frozen=True, kw_only=True)
    class Reading(PointRow, table="reading"):
        phase: str = column("init (first epoch) or later")
        rate: Estimate = column("bytes of the files over the time of the epoch", "bytes/s")

From the class follow the frame that is written (``frame_of``), the rows read back (``rows_of``),
units, and the reference page. A column keeps its name whatever an experiment varies: a parameter
of the same name is written as ``parameter_<name>``.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from scalesweep.analysis.stats import Estimate as Estimate  # noqa: PLC0414 (columns are of it)
from scalesweep.analysis.table_io import typed_values

_COLUMN = "column"


def numbers_of(
    estimate: Estimate | None, factor: float = 1.0
) -> tuple[float | None, float | None, float | None]:
    """Value and ends of the interval, times a factor, as sentences take them; None: missing."""
    if estimate is None:
        return None, None, None
    low, high = (None if end is None else factor * end for end in (estimate.low, estimate.high))
    return factor * estimate.value, low, high


@dataclass(frozen=True)
class Column:
    """A column of a declared table."""

    name: str
    kind: type  # of its values: bool, int, float, str, list (as JSON), or object: of several types
    text: str  # what it holds, as a sentence without its full stop
    unit: str = ""  # "1": a ratio or count; empty: no quantity


@dataclass(frozen=True)
class _Said:
    """What a declaration says of a field."""

    text: str
    unit: str
    ends: tuple[str, str] | None
    if_known: bool


def column(
    text: str,
    unit: str = "",
    *,
    ends: tuple[str, str] | None = None,
    if_known: bool = False,
    default: Any = MISSING,
) -> Any:
    """A field of a declared table: what it holds, and its unit.

    A column ``if_known`` is left out of a table in which no row has a value of it.

    Of an ``Estimate``, ``ends`` names the columns of its interval (by default ``<name>_low`` and
    ``<name>_high``).
    """
    return field(metadata={_COLUMN: _Said(text, unit, ends, if_known)}, default=default)


@dataclass(frozen=True, kw_only=True)
class DeclaredRow:
    """A row of a declared table: the parameters that vary come first, under their own names, or
    behind the ``leading`` columns of its class."""

    TABLE: ClassVar[str]
    LEADING: ClassVar[Sequence[str]] = ()

    point: Mapping[str, Any] = field(default_factory=dict)

    def __init_subclass__(cls, table: str = "", leading: Sequence[str] = ()) -> None:
        """Name the table as its files are called."""
        if table:
            cls.TABLE, cls.LEADING = table, leading

    @property
    def cells(self) -> dict[str, Any]:
        """The values of the declared columns by name."""
        values: dict[str, Any] = {}
        for item in _declared(type(self)):
            value = getattr(self, item.name)
            if item.kind is Estimate:
                low, high = item.ends
                known = Estimate(math.nan) if value is None else value
                values |= {item.name: known.value, low: known.low, high: known.high}
            else:
                values[item.name] = value
        return values


@dataclass(frozen=True, kw_only=True)
class SourceRow(DeclaredRow):
    """A row about the runs of a point that share a source."""

    point: Mapping[str, Any]
    source: str | None = column("measured, simulated or imported")

    @property
    def row(self) -> dict[str, Any]:
        """The point as figures, findings and tables of the page describe it."""
        return {**self.point, "source": self.source}


@dataclass(frozen=True, kw_only=True)
class PointRow(SourceRow):
    """A row about a point, with how many runs it has."""

    repeats: int = column("finished runs of the point", "1")
    planned: int = column("planned runs of the point", "1")

    @property
    def row(self) -> dict[str, Any]:
        """The point as figures, findings and tables of the page describe it."""
        return {**super().row, "repeats": self.repeats, "planned": self.planned}


Declared = TypeVar("Declared", bound=DeclaredRow)


def columns_of(kind: type[DeclaredRow]) -> tuple[Column, ...]:
    """The columns of a table, in their order, behind those of the parameters."""
    result: list[Column] = []
    for item in _declared(kind):
        unit = item.said.unit
        ends = []
        if item.kind is Estimate:
            bounds = ("lower", "upper")
            ends = [
                Column(end, float, f"{bound} end of the 95 % interval of `{item.name}`", unit)
                for end, bound in zip(item.ends, bounds, strict=True)
            ]
        result.append(Column(item.name, float if ends else item.kind, item.said.text, unit))
        result += ends
    return tuple(result)


def frame_of(rows: Iterable[DeclaredRow]) -> pd.DataFrame | None:
    """The rows as the table that is written; None if there are none.

    ``attrs["units"]`` has unit and label of each column that has a unit.
    """
    kept = list(rows)
    if not kept:
        return None
    columns = columns_of(type(kept[0]))
    names = {item.name for item in columns}
    parameters = {
        parameter_column(name, names): typed_values([row.point[name] for row in kept])
        for name in kept[0].point
    }
    cells = [row.cells for row in kept]
    optional = {item.name for item in _declared(type(kept[0])) if item.said.if_known}
    content = {
        item.name: _values([row[item.name] for row in cells], item.kind)
        for item in columns
        if item.name not in optional or any(row[item.name] is not None for row in cells)
    }
    leading = {name: content.pop(name) for name in kept[0].LEADING}
    frame = pd.DataFrame({**leading, **parameters, **content})
    frame.attrs["units"] = {
        item.name: {"unit": item.unit, "label": item.text}
        for item in columns
        if item.unit and item.name in frame
    }
    return frame


def rows_of(
    kind: type[Declared], rows: Sequence[Mapping[str, Any]], axes: Sequence[str]
) -> list[Declared]:
    """Rows of a table as written (plain values by column) as objects; ``axes`` vary in it."""
    names = {item.name for item in columns_of(kind)}
    parameters = {name: parameter_column(name, names) for name in axes}
    return [
        row_of(kind, {name: row[own] for name, own in parameters.items() if own in row}, row)
        for row in rows
    ]


def row_of(kind: type[Declared], point: Mapping[str, Any], cells: Mapping[str, Any]) -> Declared:
    """A row from the values of its columns by name, those of intervals included."""
    values: dict[str, Any] = {"point": point}
    for item in _declared(kind):
        if item.kind is Estimate and not (item.optional and cells.get(item.name) is None):
            low, high = map(cells.get, item.ends)
            values[item.name] = Estimate.of(float(cells[item.name]), low, high)
        else:
            values[item.name] = _value(cells.get(item.name), item.kind)
    return kind(**values)


def _values(values: Sequence[Any], kind: type) -> Any:
    """A column as it is written; of numbers that may have a fraction, always as such."""
    return typed_values(values, kind) if kind is not float else np.array(values, np.float64)


def _value(value: Any, kind: type) -> Any:
    """A value as it was before it was written."""
    if value is None or kind is object:
        return value
    return json.loads(value) if kind is list else kind(value)


def parameter_column(name: str, names: Iterable[str]) -> str:
    """Column of a parameter in a table with columns of these ``names``."""
    return f"parameter_{name}" if name in names else name


class _Declared(NamedTuple):
    """A field of a declared table; ``ends`` are the columns of its interval."""

    name: str
    said: _Said
    kind: type
    optional: bool

    @property
    def ends(self) -> tuple[str, str]:
        return self.said.ends or (f"{self.name}_low", f"{self.name}_high")


_known: dict[type, tuple[_Declared, ...]] = {}


def _declared(kind: type[DeclaredRow]) -> tuple[_Declared, ...]:
    """The fields of a table that are columns, in their order."""
    if kind not in _known:
        hints = get_type_hints(kind)
        _known[kind] = tuple(
            _Declared(item.name, item.metadata[_COLUMN], *_kind(hints[item.name]))
            for item in fields(kind)
            if _COLUMN in item.metadata
        )
    return _known[kind]


def _kind(hint: Any) -> tuple[type, bool]:
    """The type of a column's values, and whether some may be missing."""
    parts = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kinds = [get_origin(part) or part for part in parts if part is not NoneType]
    return kinds[0] if len(kinds) == 1 else object, len(kinds) < len(parts)
