"""From the rows of a published table to runs of a benchmark that is made for it."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalesweep.analysis.flop_conventions import is_share
from scalesweep.analysis.metrics import BYTES, is_memory
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.formatting import text_of
from scalesweep.importers.imported_run import ImportedRun, Refusal
from scalesweep.importers.table_file import FAILED, Cell, Row
from scalesweep.importers.table_map import PER_NODE, RefusedRowError, Side, Source, TableMap
from scalesweep.importers.write_records import PRINTED

MAX_RANKS = 9_999_999
MOST_MEMORY = 1e15  # bytes, of all ranks
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}


@dataclass
class TableRuns:
    """The runs of a table; ``empty`` counts the rows and values side by side without a number.

    ``types`` are those of the parameters, over all rows.
    """

    runs: list[ImportedRun] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    empty: int = 0


@dataclass(frozen=True)
class _Entry:
    """A row, or one of its values side by side, whose numbers are read."""

    row: Row
    side: Side
    point: dict[str, Cell]
    metrics: dict[str, dict[str, Any]]
    unfinished: str = ""  # why it has no result
    failed: str = ""  # the cause of a run that failed

    def refused(self, reason: object) -> Refusal:
        return Refusal(self.row.file, str(reason), self.row.line)


def runs_of(table_map: TableMap) -> TableRuns:
    """Every run of the table, in its order, and why a row is none."""
    table = table_map.table
    runs = TableRuns(refusals=list(table.refusals), notes=list(table.notes))
    entries = list(_entries(table_map, runs))
    for name, parameter in table_map.file.parameters.items():
        values = [entry.point.get(name) for entry in entries]
        runs.types[name] = parameter.type or _type(values)
    if side := table_map.file.side_by_side:
        values = [entry.point[side.parameter] for entry in entries]
        runs.types[side.parameter] = "integer" if side.parameter == "ranks" else _type(values)
    whole: list[_Entry] = []
    for entry in entries:
        try:
            _complete(table_map, entry, runs.types)
            whole.append(entry)
        except RefusedRowError as error:
            runs.refusals.append(entry.refused(error))
    for name in table_map.derive:
        runs.types[name] = table_map.file.parameters[name].type or _type(
            [entry.point[name] for entry in whole]
        )
    runs.runs = [_run(table_map, entry) for entry in _distinct(table_map, whole, runs)]
    if unread := [name for name in table.columns if name not in table_map.columns]:
        runs.notes.append(f"columns that the map does not name: {', '.join(unread)}")
    return runs


def _entries(table_map: TableMap, runs: TableRuns) -> Iterator[_Entry]:
    """What each row and side says; refusals and empty ones are noted in ``runs``."""
    for row in table_map.table.rows:
        for side in table_map.sides:
            try:
                entry = _entry(table_map, row, side)
            except RefusedRowError as error:
                side_name = table_map.file.side_by_side and table_map.file.side_by_side.parameter
                at = f"{side_name} {side.value}: " if side.value else ""
                runs.refusals.append(Refusal(row.file, f"{at}{error}", row.line))
                continue
            if entry is None:
                runs.empty += 1
            else:
                yield entry


def _entry(table_map: TableMap, row: Row, side: Side) -> _Entry | None:
    """What a row says; None if it has no value of any metric."""
    file = table_map.file
    sources = {name: of[side] for name, of in table_map.metrics.items() if side in of}
    why, cause = _failure(table_map, row, sources.values())
    metrics = {}
    for name, source in sources.items():
        if not cause and (value := _metric(table_map, name, source, row)) is not None:
            metrics[name] = value
    if not metrics and not cause:
        word = str(row.cells[file.failed.column] or "").strip() if file.failed else ""
        if word and not file.side_by_side:  # a failed run would vanish from every count
            what = f"column {file.failed.column}: {word[:40]!a}" if file.failed else ""
            raise RefusedRowError(
                f"no value, and {what} is no word of a failed run; if it is one, name it under "
                "failed"
            )
        return None
    point: dict[str, Cell] = {}
    if file.side_by_side:
        point[file.side_by_side.parameter] = side.value
    for name, source in table_map.parameters.items():
        if name == "ranks":
            point[name] = _ranks(source.number(row), name)
        elif name == PER_NODE:
            if (number := source.number(row)) is not None:
                point[name] = _ranks(number, "ranks on a node")
        else:
            cell = source.text(row)
            point[name] = " ".join(cell.split()) or None if isinstance(cell, str) else cell
    if file.side_by_side and file.side_by_side.parameter == "ranks":
        point["ranks"] = _ranks(table_map.table.number(side.value), "ranks")
    return _Entry(row, side, point, metrics, why, cause)


def _failure(table_map: TableMap, row: Row, sources: Any) -> tuple[str, str]:
    """Why a row has no result, and the cause; both are empty of all others.

    The word is in the column that the map names, else it is all that a metric's cell says.
    """
    if failed := table_map.file.failed:
        word = str(row.cells[failed.column] or "").strip()
        if (cause := failed.causes.get(word.lower())) is not None:
            return f"column {failed.column}: {word[:80]}", cause
    for source in sources:
        for name in source.columns:
            word = str(row.cells[name] or "").strip()
            if (cause := FAILED.get(word.lower())) is not None:
                return f"column {name}: {word}", str(cause)
    return "", ""


def _metric(table_map: TableMap, name: str, source: Source, row: Row) -> dict[str, Any] | None:
    """A metric of a row as a record has it; None where the cell is empty. Raises RefusedRowError
    if a value is a percentage, negative or zero, or too large where none can be."""
    metric = table_map.file.metrics[name]
    cell = source.text(row)
    if metric.unit != "1" and isinstance(cell, str) and cell.rstrip().endswith("%"):
        raise RefusedRowError(
            f"{source.what}: {cell.strip()[:30]!a} is a percentage, and the metric's unit is "
            f"{metric.unit}"
        )
    value = source.number(row)
    if value is None:
        return None
    if value <= 0 and (metric.unit in ("s", "ms", "us") or metric.unit.endswith("/s")):
        raise RefusedRowError(f"{source.what}: {value:g} {metric.unit} is not positive")
    if is_share(name) and value > 1:
        raise RefusedRowError(f"{name} = {value:.4g} is more than all of a peak: a percentage?")
    if is_memory(name, metric.unit) and not 0 <= value * BYTES[metric.unit] < MOST_MEMORY:
        raise RefusedRowError(
            f"{source.what}: {value:g} {metric.unit} is no amount of memory: another unit?"
        )
    return {"value": value, "unit": metric.unit, "better": metric.better, "scope": metric.scope}


def _ranks(number: float | int | None, what: str) -> int:
    if number is None:
        raise RefusedRowError(f"the number of {what} is missing")
    if not 1 <= number <= MAX_RANKS or int(number) != number:
        raise RefusedRowError(f"{what} is {number:g}, not a whole number from 1 to {MAX_RANKS}")
    return int(number)


def _plain_number(cell: Cell) -> float | int | None:
    """The number of a cell; None of a name: a node list, 007."""
    if isinstance(cell, bool) or cell is None:
        return None
    if not isinstance(cell, str):
        return cell if math.isfinite(cell) else None
    plain = re.fullmatch(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,17})?", cell, re.ASCII)
    return float(cell) if plain else None


def _type(values: Sequence[Cell]) -> str:
    """The type that fits every value of a parameter, missing ones left out."""
    there = [value for value in values if value is not None]
    if there and all(_boolean(value) is not None for value in there):
        return "boolean"
    numbers = [_plain_number(value) for value in there]
    if not there or None in numbers:
        return "string"
    whole = all(float(number or 0).is_integer() for number in numbers)
    return "integer" if whole else "number"


def _boolean(cell: Cell) -> bool | None:
    if isinstance(cell, bool):
        return cell
    return _BOOLEANS.get(cell.lower()) if isinstance(cell, str) else None


def _typed(name: str, cell: Cell, kind: str) -> Cell:
    """A parameter's value in its type. Raises RefusedRowError."""
    if cell is None or kind == "string":
        return cell if isinstance(cell, str | None) else canonical_json(cell)
    typed: Cell
    if kind == "boolean":
        typed = _boolean(cell)
    else:
        number = _plain_number(cell)
        typed = None if number is None else float(number)
        if kind == "integer" and typed is not None:
            typed = int(typed) if typed.is_integer() else None
    if typed is None:
        raise RefusedRowError(f"{name}: {cell!s:.30} is not of type {kind}")
    return typed


def _complete(table_map: TableMap, entry: _Entry, types: Mapping[str, str]) -> None:
    """Give the values of a point their types, and add those that follow from others.

    Raises RefusedRowError for what is printed and does not follow, ranks that make no such mesh,
    and a model that cannot be.
    """
    point = entry.point
    for name, cell in [*point.items()]:
        point[name] = _typed(name, cell, types.get(name, "integer"))
    try:
        for name, expression in table_map.derive.items():
            value = expression(point)
            if name in point and point[name] != value:
                raise RefusedRowError(
                    f"{name} is {text_of(point[name])}, but {expression.text} = {text_of(value)}"
                )
            point[name] = value
        fault = table_map.mesh and table_map.mesh.fault(point)
        if table_map.transformer:
            table_map.transformer.at(point, "the map")
    except UserError as error:  # of a cell that is empty, or 0
        raise RefusedRowError(str(error).removeprefix(f"{table_map.path}: ")) from None
    if fault:
        raise RefusedRowError(fault)


def _distinct(table_map: TableMap, entries: Sequence[_Entry], runs: TableRuns) -> Iterator[_Entry]:
    """Entries without copies, and without those that are one point only for want of a parameter.

    A row is a copy that says the same of the same point, however its numbers are written.
    """
    unnamed = [name for name in table_map.table.columns if name not in table_map.columns]
    first: dict[str, _Entry] = {}
    seen: dict[str, Row] = {}
    for entry in entries:
        point = canonical_json([entry.side, entry.point])
        said = canonical_json([point, _as_numbers(table_map, entry.row)])
        if (row := seen.setdefault(said, entry.row)) is not entry.row:
            words = "if it is another run, number the runs of a point in a column of their own"
            runs.refusals.append(entry.refused(f"a copy of {_place(row, entry.row)}; {words}"))
            continue
        other = first.setdefault(point, entry)
        unlike = [n for n in unnamed if _differ(entry.row.cells[n], other.row.cells[n])]
        if unlike:
            words = f"but another {unlike[0]}: name the column under parameters, or under ignore"
            at = _place(other.row, entry.row)
            runs.refusals.append(entry.refused(f"the same point as {at}, {words}"))
        else:
            yield entry


def _place(row: Row, beside: Row) -> str:
    """Where a row is, seen from another."""
    return f"line {row.line}" if row.file == beside.file else f"{row.file}:{row.line}"


def _as_numbers(table_map: TableMap, row: Row) -> dict[str, Cell]:
    """What a row holds, with numbers as such: 3600 and 3600.0 are one."""
    cells = _cells(row)
    for name in cells.keys() - {*table_map.file.ignore}:
        try:
            number = table_map.table.number(cells[name])
        except (ValueError, OverflowError):  # a name
            continue
        cells[name] = None if number is None else float(number)
    return cells


def _cells(row: Row) -> dict[str, Cell]:
    """What a row holds, for its digest: JSON knows no infinity."""
    return {
        name: str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell
        for name, cell in row.cells.items()
        if cell is not None
    }


def _differ(cell: Cell, other: Cell) -> bool:
    """Whether two cells are different names; numbers may differ, as measurements do."""
    names = [it for it in (cell, other) if it is not None and _plain_number(it) is None]
    return cell != other and bool(names)


def _run(table_map: TableMap, entry: _Entry) -> ImportedRun:
    """A row, or one side of it, as a run."""
    side = list(entry.side) if entry.side.number else entry.side.value
    return ImportedRun(
        benchmark=table_map.file.name,
        point=entry.point,
        file=entry.row.file,
        line=entry.row.line,
        source_digest=digest_of([table_map.file.name, side, None, _cells(entry.row)]),
        samples_per_epoch=None if table_map.file.work else 0,
        metrics=entry.metrics,
        unfinished=entry.unfinished,
        failed=entry.failed,
        notes={
            "importer": "published table",
            "lines": [entry.row.line, entry.row.line],
            PRINTED: "numbers are as rounded as the table prints them",
            "map": str(table_map.path),
            **({"published": table_map.file.source} if table_map.file.source else {}),
        },
    )
