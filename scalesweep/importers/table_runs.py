"""From the rows of a published table to runs of a benchmark that is made for it."""

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scalesweep.analysis.flop_conventions import is_share
from scalesweep.analysis.metrics import BYTES, is_memory
from scalesweep.analysis.utilisation import impossible
from scalesweep.config.formula import Number
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.formatting import text_of
from scalesweep.importers.imported_run import ImportedRun, Refusal, file_dates
from scalesweep.importers.table_file import Cell, Row, is_percentage
from scalesweep.importers.table_map import (
    PER_NODE,
    MetricMap,
    RefusedRowError,
    Side,
    Source,
    TableMap,
)
from scalesweep.importers.write_records import PRINTED

MAX_RANKS = 9_999_999
MOST_MEMORY = 1e15  # bytes, of all ranks
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}


@dataclass
class TableRuns:
    """The runs of a table; ``empty`` counts the rows and values side by side without a number.

    ``types`` are those of the parameters, over all rows; ``impossible``: lines on printed
    utilisations that were left out, as they are more than all of a peak.
    """

    runs: list[ImportedRun] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    empty: int = 0
    impossible: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Entry:
    """A row, or one of its values side by side, whose numbers are read."""

    row: Row
    side: Side
    point: dict[str, Cell]
    metrics: dict[str, dict[str, Any]]
    repeat: Cell
    unfinished: str = ""  # why it has no result
    failed: str = ""  # the cause of a run that failed


def runs_of(table_map: TableMap) -> TableRuns:
    """Every run of the table, in its order, and why a row is none."""
    runs = TableRuns(refusals=list(table_map.table.refusals), notes=list(table_map.table.notes))
    entries: list[_Entry] = []
    for row in table_map.table.rows:
        for side in table_map.sides:
            try:
                entry = _entry(table_map, row, side)
            except RefusedRowError as error:
                at = f"{table_map.side_by_side} {side.value}: " if side.value else ""
                runs.refusals.append(Refusal(table_map.table.file, f"{at}{error}", row.line))
                continue
            if entry is None:
                runs.empty += 1
            elif _possible(table_map, entry, runs):
                entries.append(entry)
    printed = [name for name in table_map.parameters if name not in table_map.worked_out]
    _find_types(table_map, entries, runs, printed)
    entries = [entry for entry in entries if _worked_out(table_map, entry, runs)]
    _find_types(table_map, entries, runs, table_map.worked_out)
    for entry in _whole(table_map, entries, runs):
        try:
            runs.runs.append(_run(table_map, entry, runs.types))
        except RefusedRowError as error:
            runs.refusals.append(Refusal(table_map.table.file, str(error), entry.row.line))
    unread = [name for name in table_map.table.columns if name not in table_map.columns]
    if unread:
        runs.notes.append(f"columns that the map does not name: {', '.join(unread)}")
    return runs


def _find_types(
    table_map: TableMap, entries: Sequence[_Entry], runs: TableRuns, names: Sequence[str]
) -> None:
    """Note the types of these parameters."""
    for name in names:
        values = [entry.point.get(name) for entry in entries]
        runs.types[name] = table_map.parameters[name].type or _type(values)


def _worked_out(table_map: TableMap, entry: _Entry, runs: TableRuns) -> bool:
    """Add the parameters that no column has; False, and a refusal, where that cannot be done."""
    typed = _as_typed(entry.point, runs.types)
    for name in table_map.worked_out:
        derive = table_map.parameters[name].derive
        assert derive is not None
        try:
            entry.point[name] = typed[name] = derive(typed)
        except UserError:  # of a cell that is empty, or 0
            why = f"{name} = {derive.text} cannot be worked out"
            runs.refusals.append(Refusal(table_map.table.file, why, entry.row.line))
            return False
    return True


def _entry(table_map: TableMap, row: Row, side: Side) -> _Entry | None:
    """What a row says; None if it has no value of any metric."""
    metrics = {}
    for name, metric in table_map.metrics.items():
        if side in metric.values and (value := _metric(metric, row, side)) is not None:
            metrics[name] = value
    unfinished, failed = _end(table_map, row)
    if not metrics and not unfinished:
        _check_end(table_map, row)
        return None
    point: dict[str, Cell] = {}
    for name, parameter in table_map.parameters.items():
        if name == table_map.side_by_side:
            point[name] = side.value
        elif parameter.source is None:
            continue  # worked out when the types of the others are known
        elif name == "ranks":
            point[name] = _ranks(parameter.source, row)
        elif name == PER_NODE:
            if parameter.source.text(row) not in (None, ""):
                point[name] = _ranks(parameter.source, row, "ranks on a node")
        else:
            # As in the file: a parameter's type is that of all its values.
            point[name] = _tidy(parameter.source.text(row))
    repeat = table_map.repeat.text(row) if table_map.repeat else None
    if table_map.repeat and repeat in (None, ""):
        raise RefusedRowError(f"{table_map.repeat.what} is empty")
    return _Entry(row, side, point, metrics, repeat, unfinished, failed)


def _end(table_map: TableMap, row: Row) -> tuple[str, str]:
    """What a row says of a run that did not finish or failed, and the cause of one that failed;
    both are empty of all others."""
    ends = ((table_map.failed, table_map.failed_words),
            (table_map.unfinished, dict.fromkeys(table_map.unfinished_words, "")))  # fmt: skip
    for source, words in ends:
        if source is not None:
            word = str(source.text(row) or "").strip()
            if (cause := words.get(word.lower())) is not None:
                return f"{source.what}: {word[:80]}", cause
    return "", ""


def _check_end(table_map: TableMap, row: Row) -> None:
    """Raise RefusedRowError for a row without a value that says with a word that the map does not
    have how it ended: a failed run would vanish from every count."""
    word = str(table_map.failed.text(row) or "").strip() if table_map.failed else ""
    if word and table_map.failed and not table_map.side_by_side:
        raise RefusedRowError(
            f"no value, and {table_map.failed.what}: {word[:40]!a} is no word of a failed run; if "
            "it is one, name it under failed"
        )


def _possible(table_map: TableMap, entry: _Entry, runs: TableRuns) -> bool:
    """Leave out printed utilisations above 1, each with a line; whether anything is left."""
    place = f"{table_map.table.file}:{entry.row.line}"
    ranks = entry.point["ranks"]
    for name in [*entry.metrics]:
        value = entry.metrics[name]["value"]
        if is_share(name) and value > 1:
            del entry.metrics[name]
            cause = impossible(value, ranks if isinstance(ranks, int) else 1)
            line = f"{name} = {value:.4g} is more than all of a peak, and was left out: {cause}"
            runs.impossible.append(f"{place}: {line}")
            if not entry.metrics and not entry.unfinished:
                runs.refusals.append(Refusal(table_map.table.file, line, entry.row.line))
    return bool(entry.metrics or entry.unfinished)


def _metric(metric: MetricMap, row: Row, side: Side) -> dict[str, Any] | None:
    """A metric of a row as a record has it; None where the cell is empty.

    The standard deviation becomes the sample's (n - 1). Raises RefusedRowError if a value is a
    percentage or negative where none can be, or a count is no number of values.
    """
    values = metric.values[side]
    for source in (values.mean, values.std):
        if source and metric.unit != "1" and is_percentage(cell := source.text(row)):
            raise RefusedRowError(
                f"{source.what}: {str(cell).strip()[:30]!a} is a percentage, and the metric's unit "
                f"is {metric.unit}"
            )
    mean = values.mean.number(row)
    if mean is None:
        return None
    if mean <= 0 and (metric.unit in ("s", "ms", "us") or metric.unit.endswith("/s")):
        raise RefusedRowError(f"{values.mean.what}: {mean:g} {metric.unit} is not positive")
    entry: dict[str, Any] = {
        "value": mean, "unit": metric.unit, "better": metric.better, "scope": metric.scope,
    }  # fmt: skip
    if is_memory(metric.name, metric.unit) and not 0 <= mean * BYTES[metric.unit] < MOST_MEMORY:
        raise RefusedRowError(
            f"{values.mean.what}: {mean:g} {metric.unit} is no amount of memory: another unit?"
        )
    std = values.std.number(row) if values.std else None
    count = values.count.number(row) if values.count else None
    if std is not None and values.std:
        if std < 0:
            raise RefusedRowError(f"{values.std.what}: a standard deviation of {std:g}")
        entry["std"] = std
    if count is not None and values.count:
        if count < 1 or count > 1e9 or int(count) != count:
            raise RefusedRowError(f"{values.count.what}: {count:g} is no number of values")
        entry["count"] = int(count)
        if metric.ddof == 0 and std is not None and count > 1:
            # Kept as the sample's: with n - 1, as intervals take it.
            entry["std"] = std * math.sqrt(count / (count - 1))
    return entry


def _ranks(source: Source, row: Row, what: str = "ranks") -> int:
    if is_percentage(cell := source.text(row)):
        raise RefusedRowError(f"{source.what}: {str(cell).strip()[:30]!a} is no number of {what}")
    number = source.number(row)
    if number is None:
        raise RefusedRowError(f"the number of {what} is missing")
    if not 1 <= number <= MAX_RANKS or int(number) != number:
        raise RefusedRowError(f"{what} is {number:g}, not a whole number from 1 to {MAX_RANKS}")
    return int(number)


def _tidy(cell: Cell) -> Cell:
    if isinstance(cell, float) and not math.isfinite(cell):
        raise RefusedRowError(f"a parameter of {cell}")
    if not isinstance(cell, str):
        return cell
    text = " ".join(cell.split())
    if len(text) > 200 or not text.isprintable():
        raise RefusedRowError(
            f"{text[:30]!a}...: a parameter of more than 200 characters, or of control characters"
        )
    return text or None


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


def _boolean(value: Cell) -> bool | None:
    if isinstance(value, bool):
        return value
    return _BOOLEANS.get(value.lower()) if isinstance(value, str) else None


def _plain_number(value: Cell) -> Number | None:
    if isinstance(value, bool) or value is None:
        return None
    if not isinstance(value, str):
        return value if math.isfinite(value) else None
    # A version (1.10), a node list or 007 is a name.
    plain = re.fullmatch(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,17})?", value, re.ASCII)
    return float(value) if plain else None


def _typed(name: str, value: Cell, kind: str) -> Cell:
    if value is None:
        return None
    typed: Cell
    if kind == "string":
        typed = value if isinstance(value, str) else canonical_json(value)
    elif kind == "boolean":
        typed = _boolean(value)
    else:
        number = _plain_number(value)
        typed = None if number is None else float(number)
        if kind == "integer" and typed is not None:
            typed = int(typed) if typed.is_integer() else None
    if typed is None:
        raise RefusedRowError(f"{name}: {value!s:.30} is not of type {kind}")
    return typed


def _whole(table_map: TableMap, entries: Sequence[_Entry], runs: TableRuns) -> Iterator[_Entry]:
    """Entries without copies, and without those that are one point only for want of a parameter.

    A row is a copy that says the same of the same point, however its numbers are written.
    """
    texts = [name for name in table_map.table.columns if name not in table_map.columns]
    first: dict[str, _Entry] = {}
    seen: dict[str, int] = {}
    for entry in entries:
        file = table_map.table.file
        point = canonical_json([entry.side, _as_typed(entry.point, runs.types)])
        said = entry.repeat if table_map.repeat else _as_numbers(table_map, entry.row)
        key = canonical_json([point, said])
        if (line := seen.setdefault(key, entry.row.line)) != entry.row.line:
            words = (
                f"repeat {entry.repeat} of this point is in line {line} already"
                if table_map.repeat
                else f"a copy of line {line}; if it is another run, number the runs of a point in "
                "a column and name it in the map (repeat: COLUMN)"
            )
            runs.refusals.append(Refusal(file, words, entry.row.line))
            continue
        other = first.setdefault(point, entry)
        unlike = [name for name in texts if _differ(entry.row.cells[name], other.row.cells[name])]
        if unlike:
            words = (
                f"the same point as line {other.row.line}, but another {unlike[0]}: name the "
                "column under parameters, or under ignore"
            )
            runs.refusals.append(Refusal(file, words, entry.row.line))
            continue
        yield entry


def _as_typed(point: Mapping[str, Cell], types: Mapping[str, str]) -> dict[str, Cell]:
    """The values of a point as its run has them; as they are written where they do not fit."""
    typed: dict[str, Cell] = {}
    for name, value in point.items():
        try:
            typed[name] = _typed(name, value, types[name])
        except RefusedRowError:
            typed[name] = value
    return typed


def _as_numbers(table_map: TableMap, row: Row) -> dict[str, Cell]:
    """What a row holds, with numbers as such (3600 and 3600.0 are one) where the map does not
    leave their column out."""
    cells = _cells(row)
    for name in cells.keys() - table_map.ignore:
        with contextlib.suppress(ValueError, OverflowError):  # a name
            number = table_map.table.number(cells[name])
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
    return cell != other and (
        (cell is not None and _plain_number(cell) is None)
        or (other is not None and _plain_number(other) is None)
    )


def _check_derived(table_map: TableMap, point: Mapping[str, Cell]) -> None:
    """Raise RefusedRowError for a value that is not what the map derives from the others."""
    for name, parameter in table_map.parameters.items():
        if parameter.derive is None:
            continue
        try:
            value = parameter.derive(point)
        except UserError:  # of a cell that is empty, or 0
            raise RefusedRowError(
                f"{name} = {parameter.derive.text} cannot be worked out"
            ) from None
        if value != point[name]:
            raise RefusedRowError(
                f"{name} is {text_of(point[name])}, but {parameter.derive.text} = {text_of(value)}"
            )


def _check_shape(table_map: TableMap, point: Mapping[str, Cell]) -> None:
    """Raise RefusedRowError for ranks that make no such mesh, and a model that cannot be."""
    try:
        fault = table_map.mesh and table_map.mesh.fault(point)
        if table_map.transformer:
            table_map.transformer.at(point, "the map")
    except UserError as error:
        raise RefusedRowError(str(error)) from None
    if fault:
        raise RefusedRowError(fault)


def _run(table_map: TableMap, entry: _Entry, types: Mapping[str, str]) -> ImportedRun:
    """A row, or one side of it, as a run; ``types``: of its parameters, by name."""
    file = table_map.table.file
    # A table states no dates: the file's own age is all there is.
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    point = {name: _typed(name, value, types[name]) for name, value in entry.point.items()}
    _check_derived(table_map, point)
    _check_shape(table_map, point)
    stated = [name for name, metric in entry.metrics.items() if "count" in metric]
    side = list(entry.side) if entry.side.number else entry.side.value
    return ImportedRun(
        benchmark=table_map.name,
        point=point,
        file=file,
        line=entry.row.line,
        source_digest=digest_of([table_map.name, side, entry.repeat, _cells(entry.row)]),
        started=modified,
        ended=modified,
        samples={},
        samples_per_epoch=None if table_map.work else 0,
        metrics=entry.metrics,
        unfinished=entry.unfinished,
        failed=entry.failed,
        notes={
            "importer": "published table",
            "lines": [entry.row.line, entry.row.line],
            PRINTED: "numbers are as rounded as the table prints them",
            "map": str(table_map.path),
            "dates": file_dates("the table"),
            **({"published": table_map.source} if table_map.source else {}),
            **({"intervals_stated_by_source": stated} if stated else {}),
        },
    )
