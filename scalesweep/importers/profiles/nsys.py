"""Nsight Systems: tables of ``nsys stats`` (CSV or text), and databases of ``nsys export``.

Databases of its predecessor nvprof too.

Several files whose names differ in ``rank<N>`` only are the ranks of one run.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from scalesweep.analysis.profile import NOT_LISTED, Function, Profile
from scalesweep.importers.imported_run import ImportRefusedError, Refusal
from scalesweep.importers.profiles.nsys_database import (
    NO_WINDOW,
    SQLITE,
    NsysFile,
    Window,
    is_database,
    read_database,
)
from scalesweep.importers.profiles.source import (
    ReadResult,
    lines_of,
    metric,
    number,
    text_of,
    unboxed,
)

_RANK = re.compile(r"(?i)(?P<before>.*?)rank[_.-]?(?P<rank>\d{1,6})(?P<after>.*)")
_TOTAL = re.compile(r"total time(?: \((ns|us|ms|s)\))?")
_SHARE = re.compile(r"time ?\(%\)")
_END = re.compile(r"(min|max)(?:imum)?(?: \((ns|us|ms|s)\))?")
_ROW = re.compile(r"\s*\d+\.\d+(?:,|\s{2,})\d+(?:,|\s{2,})\d+(?:,|\s{2,})")
# How every row begins, whole or cut: with a number.
_BEGINS = re.compile(r"\s*\"?[\d.]")
_HEADED = re.compile(r"\s*\"?Time ?\(%\)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_CALLS = ("instances", "num calls", "calls", "count", "operations")
_NAMES = ("name", "operation", "range", "event type")
# In a table of kernels and copies together (cuda_gpu_sum), with calls too (cuda_api_gpu_sum).
_CATEGORY = "category"
_KIND_OF = {"CUDA_KERNEL": "kernel", "MEMORY_OPER": "copy", "CUDA_API": "api"}
_DASHES = re.compile(r"\s*-{2,}(?:\s+-{2,})+\s*")
_ONE_RANK = {"ranks": "one, as no file name states it (--ranks N)"}


def recognise(head: str) -> bool:
    """Whether a file begins as a table of ``nsys stats`` or as a database does."""
    if head.startswith(SQLITE):
        return True
    return any(_heading(line) is not None for line in unboxed(head.splitlines()[:60]))


def read(
    files: Sequence[Path], ranks: int | None = None, window: Window | None = None
) -> ReadResult:
    """A profile of each run; files of its ranks together. ``ranks`` where the names state none;
    ``window``: the part of databases that is read."""
    result = ReadResult([], [])
    runs: dict[tuple[Path, str], dict[int | None, NsysFile]] = {}
    refused: dict[tuple[Path, str], Path] = {}  # a rank's file of these runs
    for file in files:
        match = _RANK.fullmatch(file.name)
        rank = int(match["rank"]) if match else None
        key = file.parent, f"{match['before']}*{match['after']}" if match else file.name
        try:
            if is_database(file):
                content = read_database(file, window)
            elif window is None:
                content = _tables(file)
            else:
                raise ImportRefusedError(NO_WINDOW)
        except ImportRefusedError as error:
            result.refusals.append(Refusal(file, str(error), error.line))
            refused[key] = file
            continue
        run = runs.setdefault(key, {})
        if rank in run:
            result.refusals.append(
                Refusal(file, f"rank {rank} is in {run[rank].file.name} already")
            )
            continue
        run[rank] = content
    for key, run in runs.items():
        if key in refused:
            # Without the last rank it would be a run of fewer ranks.
            words = f"another rank of its run is refused: {refused[key].name}"
            result.refusals += [Refusal(held.file, words) for held in run.values()]
            continue
        try:
            result.profiles.append(_profile(run, ranks))
        except ImportRefusedError as error:
            result.refusals.append(Refusal(next(iter(run.values())).file, str(error)))
    return result


def _profile(run: Mapping[int | None, NsysFile], ranks: int | None) -> Profile:
    """The profile of one run from its files by rank (``None``: a single file without a rank's
    number).

    Metrics are seconds per rank. Raises ImportRefusedError if a rank's file is missing, the files
    are not ``ranks``, or no table has a row.
    """
    numbers = sorted(rank for rank in run if rank is not None)
    if numbers and numbers != list(range(len(numbers))):
        missing = next(rank for rank in range(len(numbers) + 1) if rank not in numbers)
        raise ImportRefusedError(f"the file of rank {missing} is missing")
    files = [run[rank] for rank in numbers] or list(run.values())
    if ranks and numbers and ranks != len(numbers):
        raise ImportRefusedError(f"{len(numbers)} files of ranks, but --ranks {ranks}")
    functions = [
        replace(function, rank=rank if numbers else None)
        for rank, held in enumerate(files)
        for function in held.functions
    ]
    if not functions:
        raise ImportRefusedError("no table of kernels, copies or calls in it has a row")
    metrics: dict[str, dict[str, object]] = {}
    for kind, name in (("kernel", "kernel_time"), ("copy", "copy_time"), ("api", "api_time")):
        times = [function.exclusive_s for function in functions if function.kind == kind]
        if times:
            metrics[name] = metric(sum(times) / len(files), "s", "lower", "rank")
    elapsed = [held.elapsed for held in files if held.elapsed is not None]
    if elapsed:
        metrics["runtime"] = metric(max(elapsed), "s", "lower")
    busy = [phase.union_s for held in files for phase in held.phases if phase.name == "GPU"]
    # A rank without an event may have been idle, or not been recorded.
    if len(busy) == len(elapsed) == len(files):
        metrics["gpu_busy"] = metric(sum(busy) / sum(elapsed), "1", "higher", "rank")
    each = [held.busy_s for held in files if held.busy_s]
    if len(each) == len(elapsed) == len(files):
        shares = [np.mean(seconds) for seconds in each]
        metrics["gpu_busy_each"] = metric(float(sum(shares) / sum(elapsed)), "1", "higher", "rank")
    return Profile(
        tool=files[0].tool,
        file=files[0].file,
        region=files[0].region,
        ranks=len(numbers) or ranks or 1,
        profiled_ranks=len(files),
        elapsed_s=max(elapsed) if elapsed else None,
        phases=tuple(files[0].phases),
        functions=tuple(functions),
        metrics=metrics,
        notes={
            "times": "sums over calls; kernels of several streams may overlap",
            **files[0].notes,
            **({} if numbers or ranks else {"assumed": _ONE_RANK}),
        },
    )


@dataclass(frozen=True)
class _Heading:
    """Places of the columns of a table, and its unit of time in seconds."""

    name: int
    total: int
    calls: int
    share: int | None
    unit: float
    kind: str
    width: int
    # Of the shortest and the longest call, with their units; none where there are no such columns.
    ends: tuple[tuple[int, float], ...] = ()
    category: int | None = None  # of the kind of each row, in a table of several kinds


def _heading(line: str) -> _Heading | None:
    """The columns of a table of ``nsys stats``; None of a line that heads none."""
    words = [word.strip().lower() for word in _split(line)]
    totals = [(place, _TOTAL.fullmatch(word)) for place, word in enumerate(words)]
    total = next(((place, match) for place, match in totals if match), None)
    calls = next((place for place, word in enumerate(words) if word in _CALLS), None)
    name = next((place for place, word in enumerate(words) if word in _NAMES), None)
    if total is None or calls is None or name is None or total[1] is None:
        return None
    kind = "kernel" if words[calls] == "instances" else "api"
    category = words.index(_CATEGORY) if _CATEGORY in words else None
    if words[name] == "operation" and category is None:
        kind = "copy"
    elif words[name] == "range":
        kind = "range"
    share = next((place for place, word in enumerate(words) if _SHARE.fullmatch(word)), None)
    unit = total[1][1] or "ns"
    matches = {
        match[1]: (place, _UNITS[match[2] or unit])
        for place, word in enumerate(words)
        if (match := _END.fullmatch(word))
    }
    ends = (matches["min"], matches["max"]) if len(matches) == 2 else ()
    return _Heading(name, total[0], calls, share, _UNITS[unit], kind, len(words), ends, category)


def _is_heading(line: str) -> bool:
    """Whether a line heads columns, of whatever table."""
    words = _split(line)
    return len(words) > 3 and not any(re.match(r"\s*[\d.]", word) for word in words)


def _split(line: str) -> list[str]:
    if "," in line:
        return next(csv.reader([line]), [])
    return re.split(r"\s{2,}", line.strip())


def _tables(file: Path) -> NsysFile:
    """Tables one after another, as CSV, or as text whose columns a line of dashes measures."""
    tables = NsysFile(file)
    heading: _Heading | None = None
    spans: list[tuple[int, int]] = []
    rows: list[_Share] = []
    other = False  # within a table of something else, as of the sizes of copies
    for line, content in enumerate(unboxed(lines_of(text_of(file))), 1):
        if (head := _heading(content)) is not None:
            tables.functions += _whole(rows, tables)
            heading, spans, rows, other = head, [], [], False
        elif _HEADED.match(content):
            raise ImportRefusedError("a heading that cannot be read: cut off?", line)
        elif not content.strip():
            other = False
        elif heading is None:
            other = other or _DASHES.fullmatch(content) is not None or _is_heading(content)
            if not other and _ROW.match(content):
                raise ImportRefusedError(
                    "a row without its heading: lines are missing or swapped", line
                )
        elif _DASHES.fullmatch(content):
            spans = [match.span() for match in re.finditer(r"-+", content)]
            if len(spans) != heading.width:
                raise ImportRefusedError("the heading and the line below it do not match", line)
        elif (row := _row(content, heading, spans, line)) is None:
            tables.functions += _whole(rows, tables)
            heading, rows, other = None, [], _is_heading(content)
        elif row in rows:
            raise ImportRefusedError("a row is there twice", line)
        else:
            rows.append(row)
    tables.functions += _whole(rows, tables)
    return tables


@dataclass(frozen=True)
class _Share:
    """A row: its function, and the share of the table's time that it states (None: it does not)."""

    function: Function
    share: float | None
    line: int = field(compare=False)
    mixed: bool = False  # of a table of several kinds


def _whole(rows: Sequence[_Share], tables: NsysFile) -> list[Function]:
    """The functions of a table whose shares agree with its times, and what it does not list.

    Shares have one decimal. Of an excerpt the rest is a function of its own, so that the others
    keep their share.
    """
    functions = [row.function for row in rows]
    stated = [row.share for row in rows if row.share is not None]
    total = sum(function.exclusive_s for function in functions)
    if len(stated) < len(rows) or not total or not sum(stated):
        return functions
    whole = total / (sum(stated) / 100)
    if sum(stated) > 100.1 + 0.06 * len(rows):
        words = f"the shares of a table add up to {sum(stated):.1f} %: rows are there twice"
        raise ImportRefusedError(words, rows[0].line)
    if abs(sum(stated) - 100) <= 0.06 * len(rows) + 0.1:
        whole = total
    for row in rows:
        share = 100 * row.function.exclusive_s / whole
        if abs(share - (row.share or 0.0)) > 0.06 + 0.002 * share:
            raise ImportRefusedError(
                f"states {row.share:.1f} % of the table's time, which is {share:.1f} %: lines are "
                "missing, swapped or there twice",
                row.line,
            )
    if (rest := whole - total) > 1e-6 * whole:
        if rows[0].mixed:
            words = "an excerpt of a table of several kinds: nobody knows of which kind the rest is"
            raise ImportRefusedError(words, rows[0].line)
        tables.notes["not_listed"] = f"{100 * rest / whole:.1f} % of a table's time is in no row"
        kind = functions[0].kind
        functions.append(Function(NOT_LISTED, None, kind, 1, rest, rest))
    return functions


def _row(
    content: str, heading: _Heading, spans: Sequence[tuple[int, int]], line: int
) -> _Share | None:
    """A row of a table; None of text that follows it, another table's heading included."""
    if not _BEGINS.match(content):
        return None
    if spans:
        # The last column may run over its dashes.
        ends = [end for _, end in spans[:-1]] + [len(content)]
        cells = [content[a:end].strip() for (a, _), end in zip(spans, ends, strict=True)]
    else:
        try:
            cells = next(csv.reader([content], strict=True), [])
        except csv.Error:
            raise ImportRefusedError("not CSV: cut off?", line) from None
    if len(cells) != heading.width:
        if not re.match(r"\s*[\d.]+\s*(?:,|\s{2})", content):
            return None
        raise ImportRefusedError(f"{len(cells)} fields, not {heading.width}: cut off?", line)
    total = _cell(cells, heading.total, "total time", line) * heading.unit
    calls = _cell(cells, heading.calls, "calls", line)
    name = cells[heading.name].strip()
    if total < 0 or calls < 1 or not name:
        raise ImportRefusedError("a row without a name, a call or a time: cut off?", line)
    share = number(cells[heading.share], "share", line) if heading.share is not None else None
    limits = [_cell(cells, place, "longest call", line) * size for place, size in heading.ends]
    if limits:
        unit, mean = max(size for _, size in heading.ends), total / calls
        # Rounded as they are printed.
        if limits[0] > 1.001 * mean + unit or mean > 1.001 * limits[1] + unit:
            words = "the mean of a call is not between its shortest and its longest: damaged"
            raise ImportRefusedError(words, line)
    kind = heading.kind
    if heading.category is not None:
        category = cells[heading.category].strip()
        if category not in _KIND_OF:
            raise ImportRefusedError(f"{category[:30]!a} is no category of {[*_KIND_OF]}", line)
        kind = _KIND_OF[category]
    function = Function(name, None, kind, calls, total, total, *limits)
    return _Share(function, share, line, heading.category is not None)


def _cell(cells: Sequence[str], place: int, what: str, line: int) -> float:
    """A number of a row, which may have commas between its digits."""
    return number(cells[place].replace(",", ""), what, line)
