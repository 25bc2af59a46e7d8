"""Nsight Systems: tables of ``nsys stats`` (CSV or text) and databases of ``nsys export``; those of
its predecessor nvprof too.

Several files whose names differ in ``rank<N>`` only are the ranks of one run.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from scalesweep.analysis.profile import NOT_LISTED, Function, Profile
from scalesweep.importers.imported_run import ImportRefusedError, Refusal, metric
from scalesweep.importers.profiles.base import lines_of, number, unboxed
from scalesweep.importers.profiles.nsys_database import (
    NO_WINDOW,
    SQLITE,
    Recording,
    Window,
    read_database,
)

_RANK = re.compile(r"(?i)(?P<before>.*?)rank[_.-]?(?P<rank>\d{1,6})(?P<after>.*)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_UNIT = r"(?: \((?P<unit>ns|us|ms|s)\))?"
# What a column of a table says, by its heading.
_COLUMNS = {
    "share": r"time ?\(%\)", "total": f"total time{_UNIT}",
    "calls": "instances|num calls|calls|count|operations", "category": "category",
    "name": "name|operation|range|event type",
    "min": f"min(?:imum)?{_UNIT}", "max": f"max(?:imum)?{_UNIT}",
}  # fmt: skip
_CATEGORIES = {"CUDA_KERNEL": "kernel", "MEMORY_OPER": "copy", "CUDA_API": "api"}
_DASHES = re.compile(r"\s*-{2,}(?:\s+-{2,})+\s*")
_ROW = re.compile(r"\s*\d+\.\d+(?:,|\s{2,})\d+(?:,|\s{2,})\d+(?:,|\s{2,})")


def sign(head: str) -> bool:
    """Whether a file begins as a table of ``nsys stats`` or as a database does."""
    lines = unboxed(head.splitlines()[:60])
    return head.startswith(SQLITE) or any(_heading(line) for line in lines)


def read(
    files: Sequence[Path], ranks: int | None = None, window: Window | None = None
) -> Iterator[Profile | Refusal]:
    """A profile of each run; ``ranks`` if the names state none; of databases the ``window``."""
    runs: dict[tuple[Path, str], dict[int | None, Recording]] = {}
    refused: dict[tuple[Path, str], Path] = {}  # a rank's file of these runs
    for file in files:
        match = _RANK.fullmatch(file.name)
        rank = int(match["rank"]) if match else None
        key = file.parent, f"{match['before']}*{match['after']}" if match else file.name
        run = runs.setdefault(key, {})
        try:
            if rank in run:
                raise ImportRefusedError(f"rank {rank} is in {run[rank].file.name} already")
            run[rank] = _recording(file, window)
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line)
            refused[key] = file
    for key, run in runs.items():
        try:
            if key in refused and run:  # without the last rank it would be a run of fewer ranks
                raise ImportRefusedError(f"another rank of its run is refused: {refused[key].name}")
            if run:
                yield _profile(run, ranks)
        except ImportRefusedError as error:
            yield from (Refusal(held.file, str(error)) for held in run.values())


def _recording(file: Path, window: Window | None) -> Recording:
    with file.open("rb") as stream:
        is_database = stream.read(len(SQLITE)) == SQLITE.encode()
    if not is_database:
        if window is not None:
            raise ImportRefusedError(NO_WINDOW)
        return _tables(file)
    return read_database(file, window)


def _profile(run: Mapping[int | None, Recording], ranks: int | None) -> Profile:
    """The profile of a run from its files by rank (``None``: one without a rank's number); metrics
    are seconds per rank. Raises ImportRefusedError if a rank is missing, or no table has a row."""
    numbers = sorted(rank for rank in run if rank is not None)
    if missing := sorted({*range(len(numbers))} - {*numbers}):
        raise ImportRefusedError(f"the file of rank {missing[0]} is missing")
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
    for kind in ("kernel", "copy", "api"):
        if times := [function.exclusive_s for function in functions if function.kind == kind]:
            metrics[f"{kind}_time"] = metric(sum(times) / len(files), "s", "lower", "rank")
    elapsed = [held.elapsed for held in files if held.elapsed is not None]
    if elapsed:
        metrics["runtime"] = metric(max(elapsed), "s", "lower")
    # A rank without an event may have been idle, or not been recorded.
    busy = [held.gpu.union_s for held in files if held.gpu]
    several = [float(np.mean(held.busy_s)) for held in files if held.busy_s]
    for name, seconds in (("gpu_busy", busy), ("gpu_busy_each", several)):
        if len(seconds) == len(elapsed) == len(files):
            metrics[name] = metric(sum(seconds) / sum(elapsed), "1", "higher", "rank")
    assumed = {"assumed": {"ranks": "one, as no file name states it (--ranks N)"}}
    return Profile(
        tool=files[0].tool,
        file=files[0].file,
        region=files[0].region,
        ranks=len(numbers) or ranks or 1,
        profiled_ranks=len(files),
        elapsed_s=max(elapsed) if elapsed else None,
        phases=(files[0].gpu,) if files[0].gpu else (),
        functions=tuple(functions),
        metrics=metrics,
        notes={
            "times": "sums over calls; kernels of several streams may overlap",
            **files[0].notes,
            **({} if numbers or ranks else assumed),
        },
    )


@dataclass
class _Table:
    """A table of ``nsys stats``: its columns, and its functions with the shares that it states."""

    columns: Mapping[str, tuple[int, re.Match[str]]]
    width: int
    spans: list[tuple[int, int]] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def add(self, text: str, line: int) -> None:
        """Take a row; raises ImportRefusedError for one that was cut."""
        if self.spans:  # the last column may run over its dashes
            ends = [end for _, end in self.spans[:-1]] + [len(text)]
            cells = [text[a:end].strip() for (a, _), end in zip(self.spans, ends, strict=True)]
        else:
            cells = _split(text)
        if len(cells) != self.width:
            raise ImportRefusedError(f"{len(cells)} fields, not {self.width}: cut off?", line)
        numbers = {
            key: number(cells[place].replace(",", ""), key, line) * self._unit(match)
            for key, (place, match) in self.columns.items()
            if key not in ("name", "category")
        }
        name, calls = cells[self.columns["name"][0]].strip(), numbers["calls"]
        if numbers["total"] < 0 or calls < 1 or not name:
            raise ImportRefusedError("a row without a name, a call or a time: cut off?", line)
        ends_s = [numbers.get(key) for key in ("min", "max")]
        total = numbers["total"]
        self.functions.append(
            Function(name, None, self._kind(cells, line), calls, total, total, *ends_s)
        )
        if "share" in numbers:
            self.shares.append(numbers["share"])

    def _unit(self, match: re.Match[str]) -> float:
        if "unit" not in match.re.groupindex:
            return 1.0
        return _UNITS[match["unit"] or self.columns["total"][1]["unit"] or "ns"]

    def _kind(self, cells: Sequence[str], line: int) -> str:
        """The kind of a row: that of its category, else of the whole table."""
        if "category" in self.columns:
            category = cells[self.columns["category"][0]].strip()
            if category not in _CATEGORIES:
                raise ImportRefusedError(f"{category[:30]!a} is none of {[*_CATEGORIES]}", line)
            return _CATEGORIES[category]
        name, calls = self.columns["name"][1][0], self.columns["calls"][1][0]
        kinds = {"operation": "copy", "range": "range"}
        return kinds.get(name, "kernel" if calls == "instances" else "api")

    def whole(self) -> tuple[list[Function], str]:
        """The functions with an entry of what an excerpt does not list, and a note on that.

        Raises ImportRefusedError if shares and times are off by more than 1 %.
        """
        total, stated = sum(each.exclusive_s for each in self.functions), sum(self.shares)
        if len(self.shares) < len(self.functions) or not total or not stated:
            return self.functions, ""
        whole = total if abs(stated - 100) <= 1 else total / stated * 100
        shares = [100 * each.exclusive_s / whole for each in self.functions]
        apart = max(abs(a - b) for a, b in zip(shares, self.shares, strict=True))
        if stated > 101 or apart > 1:
            raise ImportRefusedError(
                f"the shares of a table add up to {stated:.1f} % and are up to {apart:.1f} % off "
                "its times: lines are missing, swapped or there twice"
            )
        if whole == total:
            return self.functions, ""
        if "category" in self.columns:
            raise ImportRefusedError("an excerpt of several kinds: of which kind is the rest?")
        rest = whole - total
        more = Function(NOT_LISTED, None, self.functions[0].kind, 1, rest, rest)
        note = f"{100 * rest / whole:.1f} % of a table's time is in no row"
        return [*self.functions, more], note


def _heading(line: str) -> _Table | None:
    """The table that a line heads; None if it heads none of times."""
    words = [word.strip().lower() for word in _split(line)]
    columns: dict[str, tuple[int, re.Match[str]]] = {}
    for place, word in enumerate(words):
        for key, pattern in _COLUMNS.items():
            if match := re.fullmatch(pattern, word):
                columns.setdefault(key, (place, match))
    return _Table(columns, len(words)) if {"total", "calls", "name"} <= columns.keys() else None


def _split(line: str) -> list[str]:
    if "," in line and not _DASHES.fullmatch(line):
        return next(csv.reader([line]), [])
    return re.split(r"\s{2,}", line.strip())


def _tables(file: Path) -> Recording:
    """Tables one after another, as CSV, or as text whose columns a line of dashes measures."""
    tables: list[_Table] = []
    table: _Table | None = None
    other = False  # within a table of something else, as of the sizes of copies
    for line, text in enumerate(unboxed(lines_of(file)), 1):
        if head := _heading(text):
            table, other = head, False
            tables.append(head)
        elif not text.strip():
            other = False
        elif table and _DASHES.fullmatch(text):
            table.spans = [match.span() for match in re.finditer(r"-+", text)]
            if len(table.spans) != table.width:
                raise ImportRefusedError("the heading and the line below it do not match", line)
        elif table and re.match(r"\s*\"?[\d.]+\"?\s*(?:,|\s{2})", text):
            table.add(text, line)
        else:
            table = None
            words = _split(text)
            other = other or (len(words) > 3 and not any(word[:1].isdigit() for word in words))
            if not other and _ROW.match(text):
                raise ImportRefusedError("a row without its heading: lines are missing", line)
    recording = Recording(file)
    for each in tables:
        functions, note = each.whole()
        recording.functions += functions
        recording.notes |= {"not_listed": note} if note else {}
    return recording
