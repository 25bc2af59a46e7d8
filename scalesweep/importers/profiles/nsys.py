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
from scalesweep.importers.profiles.nsys_database import SQLITE, Recording, read_database

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


def sign(head: str) -> bool:
    """Whether a file begins as a table of ``nsys stats`` or as a database does."""
    lines = unboxed(head.splitlines()[:60])
    return head.startswith(SQLITE) or any(_heading(line) for line in lines)


def read(files: Sequence[Path], ranks: int | None = None) -> Iterator[Profile | Refusal]:
    """A profile of each run; ``ranks`` if the names state none."""
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
            run[rank] = _recording(file)
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


def _recording(file: Path) -> Recording:
    with file.open("rb") as stream:
        is_database = stream.read(len(SQLITE)) == SQLITE.encode()
    return read_database(file) if is_database else _tables(file)


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
    if elapsed := [held.elapsed for held in files if held.elapsed is not None]:
        metrics["runtime"] = metric(max(elapsed), "s", "lower")
    # A rank without an event may have been idle, or not been recorded.
    busy = [held.gpu_s for held in files if held.gpu_s is not None]
    several = [float(np.mean(held.busy_s)) for held in files if held.busy_s]
    for name, seconds in (("gpu_busy", busy), ("gpu_busy_each", several)):
        if len(seconds) == len(elapsed) == len(files):
            metrics[name] = metric(sum(seconds) / sum(elapsed), "1", "higher", "rank")
    assumed = {"assumed": {"ranks": "one, as no file name states it (--ranks N)"}}
    return Profile(
        tool=files[0].tool,
        file=files[0].file,
        ranks=len(numbers) or ranks or 1,
        profiled_ranks=len(files),
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
    """A table of ``nsys stats``: of its columns the place and the unit, and its functions with the
    shares that it states. ``kind``: of all rows; empty where a column has the category of each."""

    columns: Mapping[str, tuple[int, float]]
    width: int
    kind: str
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
        said = {key: cells[place].strip() for key, (place, _) in self.columns.items()}
        name, category = said.pop("name"), said.pop("category", "")
        kind = self.kind or _CATEGORIES.get(category, "")
        if not kind:
            raise ImportRefusedError(f"{category[:30]!a} is none of {[*_CATEGORIES]}", line)
        numbers = {
            key: number(word.replace(",", ""), key, line) * self.columns[key][1]
            for key, word in said.items()
        }
        total, calls = numbers["total"], numbers["calls"]
        ends_s = numbers.get("min"), numbers.get("max")
        self.functions.append(Function(name, None, kind, calls, total, total, *ends_s))
        self.shares += [numbers["share"]] if "share" in numbers else []

    def whole(self) -> list[Function]:
        """The functions, with an entry of what an excerpt does not list.

        Raises ImportRefusedError if shares and times are off by more than 1 %.
        """
        total, stated = sum(each.exclusive_s for each in self.functions), sum(self.shares)
        if len(self.shares) < len(self.functions) or not total or not stated:
            return self.functions
        rest = total / stated * 100 - total if abs(stated - 100) > 1 else 0.0
        shares = [100 * each.exclusive_s / (total + rest) for each in self.functions]
        apart = max(abs(a - b) for a, b in zip(shares, self.shares, strict=True))
        if stated > 101 or apart > 1:
            raise ImportRefusedError(
                f"the shares of a table add up to {stated:.1f} % and are up to {apart:.1f} % off "
                "its times: lines are missing, swapped or there twice"
            )
        if rest and not self.kind:
            raise ImportRefusedError("an excerpt of several kinds: of which kind is the rest?")
        more = [Function(NOT_LISTED, None, self.kind, 1, rest, rest)] if rest else []
        return self.functions + more


def _heading(line: str) -> _Table | None:
    """The table that a line heads; None if it heads none of times."""
    words = [word.strip().lower() for word in _split(line)]
    places: dict[str, int] = {}
    units: dict[str, str | None] = {}
    for place, word in enumerate(words):
        for key, pattern in _COLUMNS.items():
            if (match := re.fullmatch(pattern, word)) and key not in places:
                places[key], units[key] = place, match.groupdict(default="").get("unit")
    if not {"total", "calls", "name"} <= places.keys():
        return None
    usual = units["total"] or "ns"
    scales = {key: 1.0 if unit is None else _UNITS[unit or usual] for key, unit in units.items()}
    kinds = {"operation": "copy", "range": "range"}
    kind = "kernel" if words[places["calls"]] == "instances" else "api"
    return _Table(
        {key: (place, scales[key]) for key, place in places.items()},
        len(words),
        "" if "category" in places else kinds.get(words[places["name"]], kind),
    )


def _split(line: str) -> list[str]:
    if "," in line and not _DASHES.fullmatch(line):
        return next(csv.reader([line]), [])
    return re.split(r"\s{2,}", line.strip())


def _tables(file: Path) -> Recording:
    """Tables one after another, as CSV, or as text whose columns a line of dashes measures."""
    tables: list[_Table] = []
    table: _Table | None = None
    for line, text in enumerate(unboxed(lines_of(file)), 1):
        if head := _heading(text):
            table = head
            tables.append(head)
        elif table and _DASHES.fullmatch(text):
            table.spans = [match.span() for match in re.finditer(r"-+", text)]
            if len(table.spans) != table.width:
                raise ImportRefusedError("the heading and the line below it do not match", line)
        elif table and re.match(r"\s*\"?[\d.]+\"?\s*(?:,|\s{2})", text):
            table.add(text, line)
        elif text.strip():
            table = None
    return Recording(file, [function for table in tables for function in table.whole()])
