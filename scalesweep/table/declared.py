"""A table as a class whose fields are its columns.

    @dataclass(frozen=True, kw_only=True)
    class Reading(PointRow, table="reading"):
        phase: str = column("init (first epoch) or later")
        rate: Estimate = column("bytes of the files over the time of the epoch", "bytes/s")

From the class follow the frame that is written (``frame_of``), the rows read back (``rows_of``),
units, and the reference page. A column keeps its name whatever an experiment varies: a parameter
of the same name is written as ``parameter_<name>``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from types import NoneType
from typing import Any, ClassVar, Self, TypeVar, get_args, get_type_hints

import pandas as pd

from scalesweep.analysis.table_io import typed_values
from scalesweep.core.formatting import finite

_COLUMN = "column"


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; ``low`` and ``high`` are None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, value: float, low: Any, high: Any) -> Self:
        """An estimate; bounds that are not finite are missing."""
        return cls(value, *((float(end) if finite(end) else None) for end in (low, high)))


@dataclass(frozen=True)
class Column:
    """A column of a declared table."""

    name: str
    kind: type  # of its values: bool, int, float, str
    text: str  # what it holds, as a sentence without its full stop
    unit: str = ""  # "1": a ratio or count; empty: no quantity


@dataclass(frozen=True)
class _Said:
    """What a declaration says of a field."""

    text: str
    unit: str
    ends: tuple[str, str] | None
    ends_after: str


def column(
    text: str,
    unit: str = "",
    *,
    ends: tuple[str, str] | None = None,
    ends_after: str = "",
    default: Any = MISSING,
) -> Any:
    """A field of a declared table: what it holds, and its unit.

    Of an ``Estimate``, ``ends`` names the columns of its interval (by default ``<name>_low`` and
    ``<name>_high``), which follow the value, or the column ``ends_after``.
    """
    return field(metadata={_COLUMN: _Said(text, unit, ends, ends_after)}, default=default)


@dataclass(frozen=True, kw_only=True)
class PointRow:
    """A row of a table about points: the parameters that vary come first, under their own names."""

    TABLE: ClassVar[str]

    point: Mapping[str, Any]
    source: str | None = column("measured, simulated or imported")
    repeats: int = column("finished runs of the point", "1")
    planned: int = column("planned runs of the point", "1")

    def __init_subclass__(cls, table: str = "") -> None:
        """Name the table as its files are called."""
        if table:
            cls.TABLE = table

    @property
    def row(self) -> dict[str, Any]:
        """The point as figures, findings and tables of the page describe it."""
        runs = {"repeats": self.repeats, "planned": self.planned}
        return {**self.point, "source": self.source, **runs}

    @property
    def cells(self) -> dict[str, Any]:
        """The values of the declared columns by name."""
        values: dict[str, Any] = {}
        for name, said, _ in _declared(type(self)):
            value = getattr(self, name)
            if isinstance(value, Estimate):
                low, high = _ends(name, said)
                values |= {name: value.value, low: value.low, high: value.high}
            else:
                values[name] = value
        return values


Declared = TypeVar("Declared", bound=PointRow)


def columns_of(kind: type[PointRow]) -> tuple[Column, ...]:
    """The columns of a table, in their order, behind those of the parameters."""
    result: list[Column] = []
    waiting: dict[str, list[Column]] = {}
    for name, said, hint in _declared(kind):
        ends = []
        if hint is Estimate:
            bounds = ("lower", "upper")
            ends = [
                Column(end, float, f"{bound} end of the 95 % interval of `{name}`", said.unit)
                for end, bound in zip(_ends(name, said), bounds, strict=True)
            ]
        result.append(Column(name, float if ends else hint, said.text, said.unit))
        if said.ends_after:
            waiting[said.ends_after] = ends
        else:
            result += ends
        result += waiting.pop(name, [])
    if waiting:
        raise TypeError(f"{kind.__name__}: no column behind which an interval stands: {[*waiting]}")
    return tuple(result)


def frame_of(rows: Iterable[PointRow]) -> pd.DataFrame | None:
    """The rows as the table that is written; None if there are none.

    ``attrs["units"]`` has unit and label of each column that has a unit.
    """
    kept = list(rows)
    if not kept:
        return None
    columns = columns_of(type(kept[0]))
    names = {item.name for item in columns}
    content = {
        _parameter(name, names): typed_values([row.point[name] for row in kept])
        for name in kept[0].point
    }
    cells = [row.cells for row in kept]
    for item in columns:
        content[item.name] = typed_values([row[item.name] for row in cells], item.kind)
    frame = pd.DataFrame(content)
    frame.attrs["units"] = {
        item.name: {"unit": item.unit, "label": item.text} for item in columns if item.unit
    }
    return frame


def rows_of(
    kind: type[Declared], rows: Sequence[Mapping[str, Any]], axes: Sequence[str]
) -> list[Declared]:
    """Rows of a table as written (plain values by column) as objects; ``axes`` vary in it."""
    names = {item.name for item in columns_of(kind)}
    parameters = {name: _parameter(name, names) for name in axes}
    result = []
    for row in rows:
        values: dict[str, Any] = {
            "point": {name: row[own] for name, own in parameters.items() if own in row}
        }
        for name, said, hint in _declared(kind):
            if hint is Estimate:
                values[name] = Estimate.of(float(row[name]), *map(row.get, _ends(name, said)))
            else:
                value = row.get(name)
                values[name] = None if value is None else hint(value)
        result.append(kind(**values))
    return result


def _parameter(name: str, names: Iterable[str]) -> str:
    """Column of a parameter in a table with columns of these ``names``."""
    return f"parameter_{name}" if name in names else name


_known: dict[type, tuple[tuple[str, _Said, type], ...]] = {}


def _declared(kind: type[PointRow]) -> tuple[tuple[str, _Said, type], ...]:
    """Name, declaration and type of each column; of an optional one its other type."""
    if kind not in _known:
        hints = get_type_hints(kind)
        _known[kind] = tuple(
            (item.name, item.metadata[_COLUMN], _kind(hints[item.name]))
            for item in fields(kind)
            if _COLUMN in item.metadata
        )
    return _known[kind]


def _kind(hint: Any) -> type:
    kinds = [part for part in get_args(hint) if part is not NoneType] or [hint]
    return kinds[0]  # type: ignore[no-any-return]


def _ends(name: str, said: _Said) -> tuple[str, str]:
    return said.ends or (f"{name}_low", f"{name}_high")
