"""Published numbers: what a check reads them from, as they are printed."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.gallery.study import Check, Constant, Study
from scalesweep.importers.table_file import Cell, Table, half_unit, read_table

VALUE = "value"
_TRUTH = frozenset({"true", "false"})
_SUFFIX = re.compile(r"\s*(?:x|×|%)$")


@dataclass(frozen=True)
class PublishedNumber:
    """A number as it is printed, half of its last digit, and the row that it stands in."""

    value: float
    half_digit: float
    printed: str
    row: Mapping[str, Cell]
    label: str


def published_numbers(
    study: Study, check: Check, tables: Mapping[str, Path]
) -> list[PublishedNumber]:
    """The numbers of a check; ``tables``: what was imported, by the name of its import.

    Raises UserError for a file without the column, or none of whose rows has a number.
    """
    published = check.published
    if isinstance(published, list):
        return [_number(row[VALUE], row, [key for key in row if key != VALUE]) for row in published]
    where = f"{study.name}: {check.name}"
    of = published.get("rows_of")
    path = tables[of] if of else study.folder / published["file"]
    table = read_table(path)
    column = published["column"]
    if column not in table.columns:
        raise UserError(f"{path}: has no column {column!r}, in which {where} is published")
    keys = published.get("keys", [name for name in table.columns if name != column])
    numbers = list(_of_table(table, column, keys, published.get("rows", {})))
    if not numbers:
        raise UserError(f"{path}: no row has a number in {column!r} ({where})")
    return numbers


def _of_table(
    table: Table, column: str, keys: list[str], rows: Mapping[str, Constant]
) -> Iterator[PublishedNumber]:
    for row in table.rows:
        if any(not same(row.cells.get(name), value) for name, value in rows.items()):
            continue
        cell = row.cells[column]
        text = "" if cell is None else str(cell)
        if re.search(r"\d", text):
            yield _number(text, row.cells, keys)


def _number(text: str, row: Mapping[str, Cell], keys: list[str]) -> PublishedNumber:
    """``1.17x`` and ``58.70 %`` are 1.17 and 58.70; a comma stands between thousands."""
    plain = _SUFFIX.sub("", text.strip()).replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        raise UserError(f"{text!r}: published, but is no number") from None
    shown = {key: row.get(key) for key in keys}
    label = ", ".join(f"{key} {value}" for key, value in shown.items() if value not in (None, ""))
    return PublishedNumber(value, half_unit(plain), text.strip(), row, label)


def same(cell: Cell, wanted: object) -> bool:
    """Whether a cell of a table is this value: as numbers or truth values where both are, else as
    text."""
    texts = str(cell).lower(), str(wanted).lower()
    if _TRUTH.issuperset(texts):
        return texts[0] == texts[1]
    try:
        numbers = [float(str(value).replace(",", "")) for value in (cell, wanted)]
        return math.isclose(*numbers, rel_tol=1e-12)
    except ValueError:
        return str(cell) == str(wanted)
