"""From the rows of a published table to runs of a benchmark that is made for it."""

import contextlib
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
from scalesweep.importers.imported_run import ImportedRun, Refusal, metric
from scalesweep.importers.made_benchmark import Made, entries_of
from scalesweep.importers.table_file import FAILED, Cell, Row
from scalesweep.importers.table_map import PER_NODE, RefusedRowError, Source, TableMap
from scalesweep.importers.write_records import PRINTED

MAX_RANKS = 9_999_999
MOST_MEMORY = 1e15  # bytes, of all ranks
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}


@dataclass
class TableRuns:
    """The runs of a table; ``made`` is what its benchmark is."""

    runs: list[ImportedRun]
    refusals: list[Refusal]
    notes: list[str]
    made: Made


@dataclass(frozen=True)
class _Entry:
    """A row, or one of its values side by side, whose numbers are read."""

    row: Row
    point: dict[str, Cell]
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    unfinished: str = ""  # why it has no result
    failed: str = ""  # the cause of a run that failed

    def refused(self, reason: object) -> Refusal:
        return Refusal(self.row.file, str(reason), self.row.line)


def runs_of(table_map: TableMap) -> TableRuns:
    """Every run of the table, in its order, and why a row is none."""
    table, file = table_map.table, table_map.file
    refusals, notes = list(table.refusals), list(table.notes)
    entries: list[_Entry] = []
    empty = 0
    for row in table.rows:
        try:
            entry = _entry(table_map, row)
        except RefusedRowError as error:
            at = f"{row.side[2]}: " if row.side else ""
            refusals.append(Refusal(row.file, f"{at}{error}", row.line))
            continue
        empty += entry is None
        entries += [entry] if entry else []
    types = _types(table_map, entries)
    whole: list[_Entry] = []
    for entry in entries:
        try:
            _complete(table_map, entry, types)
            whole.append(entry)
        except RefusedRowError as error:
            refusals.append(entry.refused(error))
    derived = _types(table_map, whole)
    types |= {name: derived[name] for name in table_map.derive}
    runs = [_run(table_map, entry) for entry in _distinct(table_map, whole, refusals)]
    if unread := [name for name in table.columns if name not in table_map.columns]:
        notes.append(f"columns that the map does not name: {', '.join(unread)}")
    if empty:
        without = f"without a value: {empty} of the runs that rows and columns could hold"
        name = next(name for it in table_map.metrics.values() for name in it.columns)
        hint = f'; if they failed, write `failed: {{column: {name}, values: [""]}}` in the map'
        notes.append(without + ("" if file.failed or file.side_by_side else hint))
    metrics = {
        name: {"definition": it.doc, "kind": it.kind} if it.kind else it.doc
        for name, it in file.metrics.items()
    }
    summary = file.summary or f"Published table {table.file.name}."
    work = file.work.model_dump() if file.work else None
    parameters = {
        name: it.model_dump() | {"type": types[name], "doc": it.doc or f"{name} of the table."}
        for name, it in file.parameters.items()
        if name != PER_NODE
    }
    made = Made(summary, entries_of(parameters), metrics, table_map.declared, file.scale, work)
    return TableRuns(runs, refusals, notes, made)


def _types(table_map: TableMap, entries: Sequence[_Entry]) -> dict[str, str]:
    """The type of every parameter: as the map states it, else what fits all its values."""
    return {
        name: it.type or _type([entry.point.get(name) for entry in entries])
        for name, it in table_map.file.parameters.items()
    }


def _entry(table_map: TableMap, row: Row) -> _Entry | None:
    """What a row says; None if it has no value of any metric. Raises RefusedRowError."""
    file = table_map.file
    why, cause = _failure(table_map, row)
    metrics = {}
    for name, source in table_map.metrics.items():
        if not cause and (value := _metric(table_map, name, source, row)) is not None:
            metrics[name] = value
    if not metrics and not cause:
        word = str(row.cells[file.failed.column] or "").strip() if file.failed else ""
        if word and not file.side_by_side:  # a failed run would vanish from every count
            raise RefusedRowError(
                f"no value, and {word[:40]!a} is no word of a failed run; if it is one, name it "
                "under failed"
            )
        return None
    point: dict[str, Cell] = {}
    for name, source in table_map.parameters.items():
        cell = source.text(row)
        if name == PER_NODE:
            if (number := source.number(row)) is not None:
                point[name] = _ranks(number, "ranks on a node")
        elif name == "ranks":
            point[name] = _ranks(source.number(row), name)
        else:
            point[name] = " ".join(cell.split()) or None if isinstance(cell, str) else cell
    return _Entry(row, point, metrics, why, cause)


def _failure(table_map: TableMap, row: Row) -> tuple[str, str]:
    """Why a row has no result, and the cause; both are empty of all others.

    The word is in the column that the map names, else it is all that a metric's cell says.
    """
    failed = table_map.file.failed
    looked: list[tuple[str, Mapping[str, str]]] = [(failed.column, failed.causes)] if failed else []
    looked += [(name, FAILED) for it in table_map.metrics.values() for name in it.columns]
    for name, causes in looked:
        word = str(row.cells[name] if row.cells[name] is not None else "").strip()
        if (cause := causes.get(word.lower())) is not None:
            return f"column {name}: {word[:80] or 'empty'}", str(cause)
    return "", ""


def _metric(table_map: TableMap, name: str, source: Source, row: Row) -> dict[str, Any] | None:
    """A metric of a row as a record has it; None where the cell is empty. Raises RefusedRowError
    if a value is a percentage, negative or zero, or too large where none can be."""
    said = table_map.file.metrics[name]
    cell, value = source.text(row), source.number(row)
    if value is None:
        return None
    timed = said.unit in ("s", "ms", "us") or said.unit.endswith("/s")
    fault = ""
    if said.unit != "1" and isinstance(cell, str) and cell.rstrip().endswith("%"):
        fault = f"{cell.strip()[:30]!a} is a percentage, and the metric's unit is {said.unit}"
    elif value <= 0 and timed:
        fault = f"{value:g} {said.unit} is not positive"
    elif is_share(name) and value > 1:
        fault = f"{name} = {value:.4g} is more than all of a peak: a percentage?"
    elif is_memory(name, said.unit) and not 0 <= value * BYTES[said.unit] < MOST_MEMORY:
        fault = f"{value:g} {said.unit} is no amount of memory: another unit?"
    if fault:
        raise RefusedRowError(f"{source.what}: {fault}")
    return metric(value, said.unit, said.better, said.scope)


def _ranks(number: float | int | None, what: str) -> int:
    if number is None:
        raise RefusedRowError(f"the number of {what} is missing")
    if not 1 <= number <= MAX_RANKS or int(number) != number:
        raise RefusedRowError(f"{what} is {number:g}, not a whole number from 1 to {MAX_RANKS}")
    return int(number)


def _plain_number(cell: Cell) -> float | int | None:
    """The number of a cell; None of a name: a node list, 007."""
    if isinstance(cell, str):
        plain = re.fullmatch(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,17})?", cell, re.ASCII)
        return float(cell) if plain else None
    return None if isinstance(cell, bool) or cell is None or not math.isfinite(cell) else cell


def _boolean(cell: Cell) -> bool | None:
    return cell if isinstance(cell, bool) else _BOOLEANS.get(str(cell).lower())


def _type(values: Sequence[Cell]) -> str:
    """The type that fits every value of a parameter, missing ones left out."""
    there = [value for value in values if value is not None]
    if there and all(_boolean(value) is not None for value in there):
        return "boolean"
    numbers = [_plain_number(value) for value in there]
    if not there or None in numbers:
        return "string"
    return "integer" if all(float(it or 0).is_integer() for it in numbers) else "number"


def _typed(name: str, cell: Cell, kind: str) -> Cell:
    """A parameter's value in its type. Raises RefusedRowError."""
    if cell is None or kind == "string":
        return cell if isinstance(cell, str | None) else canonical_json(cell)
    number = _plain_number(cell)
    whole = number is not None and float(number).is_integer()
    typed: Cell = {
        "boolean": _boolean(cell),
        "integer": int(number) if number is not None and whole else None,
        "number": None if number is None else float(number),
    }[kind]
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
            if point.get(name, value) != value:
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


def _distinct(
    table_map: TableMap, entries: Sequence[_Entry], refusals: list[Refusal]
) -> Iterator[_Entry]:
    """Entries without copies, and without those that are one point only for want of a parameter.

    A row is a copy that says the same of the same point, however its numbers are written.
    """
    unnamed = [name for name in table_map.table.columns if name not in table_map.columns]
    first: dict[str, _Entry] = {}
    seen: dict[str, Row] = {}
    for entry in entries:
        point = canonical_json([entry.row.side, entry.point])
        row = entry.row
        said = repr([point, _as_numbers(table_map, row)])
        if (before := seen.setdefault(said, row)) is not row:
            words = "if it is another run, number the runs of a point in a column of their own"
            refusals.append(entry.refused(f"a copy of {_place(before, row)}; {words}"))
            continue
        other = first.setdefault(point, entry).row
        # Numbers may differ, as measurements do; names do not.
        pairs = {name: (row.cells[name], other.cells[name]) for name in unnamed}
        unlike = [
            name
            for name, (cell, there) in pairs.items()
            if cell != there
            and any(it is not None and _plain_number(it) is None for it in (cell, there))
        ]
        if unlike:
            words = f"but another {unlike[0]}: name the column under parameters, or under ignore"
            refusals.append(entry.refused(f"the same point as {_place(other, row)}, {words}"))
        else:
            yield entry


def _place(row: Row, beside: Row) -> str:
    """Where a row is, seen from another."""
    return f"line {row.line}" if row.file == beside.file else f"{row.file}:{row.line}"


def _as_numbers(table_map: TableMap, row: Row) -> dict[str, Cell]:
    """What a row holds, with numbers as such: 3600 and 3600.0 are one."""
    cells: dict[str, Cell] = {n: cell for n, cell in row.cells.items() if cell is not None}
    for name in cells.keys() - {*table_map.file.ignore}:
        with contextlib.suppress(ValueError, OverflowError):  # of a name
            number = table_map.table.number(cells[name])
            cells[name] = None if number is None else float(number)
    return cells


def _run(table_map: TableMap, entry: _Entry) -> ImportedRun:
    """A row, or one side of it, as a run."""
    file = table_map.file
    return ImportedRun(
        benchmark=file.name,
        point=entry.point,
        file=entry.row.file,
        line=entry.row.line,
        source_digest=digest_of([file.name, entry.row.side, repr(entry.row.cells)]),
        samples_per_epoch=None if file.work else 0,
        metrics=entry.metrics,
        unfinished=entry.unfinished,
        failed=entry.failed,
        notes={
            "importer": "published table",
            "lines": [entry.row.line, entry.row.line],
            **({"side": entry.row.side[:2]} if entry.row.side else {}),
            PRINTED: "numbers are as rounded as the table prints them",
            "map": str(table_map.path),
            **({"published": file.source} if file.source else {}),
        },
    )
