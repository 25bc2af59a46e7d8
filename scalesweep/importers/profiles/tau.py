"""TAU's profiles as ``pprof`` prints them: a section for each node, context and thread, then
``FUNCTION SUMMARY (mean)`` and ``(total)``.

Rows such as ``MPI_Bcast() [ <comm> = <ranks: 0, 1> ... ]`` and ``main => solve`` say again what
their function's own row says; they are skipped.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scalesweep.analysis.pop import rank_factors
from scalesweep.analysis.profile import NOT_LISTED, Function, Profile, RankTimes
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.source import (
    ReadResult,
    lines_of,
    metric,
    read_each,
    text_of,
)
from scalesweep.importers.table_file import half_unit

TOOL = "tau"
_COMPLETE = 0.01  # of the time: what the digits of a whole table leave open
_NODE = re.compile(r"NODE (\d{1,7});CONTEXT (\d{1,7});THREAD (\d{1,7}):\s*")
_SUMMARY = re.compile(r"FUNCTION SUMMARY \((mean|total)\):\s*")
_ROW = re.compile(
    r"\s*(?P<share>\d+\.\d+)\s+(?P<exclusive>[\d.,:eE+-]+)\s+(?P<inclusive>[\d.,:eE+-]+)"
    r"\s+(?P<calls>[\d.eE+]+)\s+[\d.eE+]+\s+[\d.eE+-]+\s(?P<name>.*\S)\s*"
)
_HEADING = re.compile(r"\s*(?:%Time\s+Exclusive|msec\s+total msec|-{20,})")
_AGAIN = re.compile(r"\[ .*\]$| => ")
_MPI = re.compile(r"P?MPI_\w+")
_CLOCK = re.compile(r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2}\.\d{1,3})")
_PLAIN = re.compile(
    r"\d{1,3}(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d{1,3})?|\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?"
)


@dataclass
class _Section:
    """Rows of a node's thread, or of the mean over all."""

    node: int | None
    thread: tuple[int, int]
    line: int
    rows: list[Function] = field(default_factory=list)
    half: float = 0.0  # of the last digit of the first row's time

    @property
    def elapsed(self) -> float:
        """Inclusive time of what contains all others."""
        return max((row.inclusive_s or 0.0 for row in self.rows), default=0.0)

    @property
    def unlisted(self) -> float:
        """Elapsed time that no row has as its own; negative where rows overlap."""
        return self.elapsed - sum(row.exclusive_s for row in self.rows)

    @property
    def mpi(self) -> float:
        """Exclusive time of MPI's functions."""
        return sum(row.exclusive_s for row in self.rows if _MPI.match(row.name))


def recognise(head: str) -> bool:
    """Whether a file begins as pprof's output does."""
    lines = [line.strip() for line in head.splitlines()[:200]]
    return any(_NODE.fullmatch(line) or _SUMMARY.fullmatch(line) for line in lines)


def read(files: Sequence[Path], ranks: int | None = None) -> ReadResult:
    """A profile of each file; ``ranks`` where it has the mean only."""
    return read_each(files, lambda file: [_profile(file, ranks)])


def _profile(file: Path, ranks: int | None) -> Profile:
    """The profile of one file: by node where all nodes have a section, else the mean over ranks.

    Factors are computed only where every node has a section whose rows add up to its time. Raises
    ImportRefusedError if a section is cut off or its times contradict each other.
    """
    nodes, mean, again = _sections(text_of(file))
    for section in (*nodes, *([mean] if mean else [])):
        if not section.rows:
            raise ImportRefusedError("a section without a function: cut off?", section.line)
    first = _processes(nodes, ranks)
    threads = len(nodes) - len(first)
    shown = first or ([mean] if mean else [])
    if not shown:
        raise ImportRefusedError("no node and no mean: cut off?")
    elapsed = np.array([section.elapsed for section in shown])
    mpi = np.array([section.mpi for section in shown])
    if not (elapsed > 0).all() or (mpi > elapsed * 1.01).any():
        raise ImportRefusedError("functions take no time, or MPI's more than all together")
    if mean and first and not threads:
        _compare(mean, float(elapsed.mean()), float(mpi.mean()))
    useful = np.maximum(elapsed - mpi, 0.0)
    left = [section.unlisted / section.elapsed for section in shown]
    notes: dict[str, object] = {"times": "of each node" if first else "means over all ranks"}
    if again:
        notes["rows_skipped"] = f"{again} rows that say again what others say"
    if threads:
        notes["threads"] = f"{threads} further threads, whose times are not added"
    if max(left) > _COMPLETE:
        notes["not_listed"] = f"up to {100 * max(left):.1f} % of a node's time is in no row"
    if min(left) < -_COMPLETE:
        notes["overlap"] = "rows overlap: their own times add up to more than elapsed"
    # What is not listed may be MPI: without it nothing is known of the useful time.
    whole = bool(first) and bool((useful > 0).all()) and max(left) <= _COMPLETE
    return Profile(
        tool=TOOL,
        file=file,
        ranks=len(first) or ranks,
        elapsed_s=float(elapsed.max()),
        rank_times=RankTimes(elapsed, useful, mpi) if whole else None,
        factors=rank_factors(useful, float(elapsed.max())) if whole else None,
        functions=tuple(row for section in shown for row in _with_rest(section)),
        metrics={
            "runtime": metric(float(elapsed.max()), "s", "lower"),
            "mpi_time": metric(float(mpi.mean()), "s", "lower", "rank"),
            "useful_time": metric(float(useful.mean()), "s", "lower", "rank"),
        },
        notes=notes,
    )


def _processes(nodes: Sequence[_Section], ranks: int | None) -> list[_Section]:
    """The first thread of every node, which is its process; others work for it at the same time."""
    first = {node.node: node for node in nodes if node.node is not None and node.thread == (0, 0)}
    if sorted(first) != list(range(len(first))):
        missing = next(node for node in range(len(first)) if node not in first)
        raise ImportRefusedError(f"node {missing} of those up to {max(first)} is missing")
    if ranks and first and ranks != len(first):
        raise ImportRefusedError(f"has {len(first)} nodes, but --ranks {ranks}")
    return [first[node] for node in range(len(first))]


def _compare(mean: _Section, elapsed: float, mpi: float) -> None:
    """Refuse a mean that is not that of the nodes (``elapsed``, ``mpi``: their means)."""
    for own, theirs, words in ((mean.elapsed, elapsed, "in all"), (mean.mpi, mpi, "in MPI")):
        if abs(own - theirs) > 0.01 * elapsed:
            raise ImportRefusedError(
                f"the mean has {own:.4g} s {words}, the nodes {theirs:.4g} s on average: sections "
                "or rows are missing or changed"
            )


def _with_rest(section: _Section) -> list[Function]:
    """The rows, and what none of them has as an entry of its own, so that shares stay right."""
    rest = section.unlisted
    if rest <= _COMPLETE * section.elapsed:
        return section.rows
    return [*section.rows, Function(NOT_LISTED, section.node, "cpu", 1, rest, rest)]


def _sections(text: str) -> tuple[list[_Section], _Section | None, int]:
    """Sections of nodes, the section of the mean, and how many rows were skipped."""
    nodes: list[_Section] = []
    mean: _Section | None = None
    current: _Section | None = None
    again, total = 0, False
    for line, content in enumerate(lines_of(text), 1):
        if node := _NODE.fullmatch(content.strip()):
            current = _Section(int(node[1]), (int(node[2]), int(node[3])), line)
            if any((node.node, node.thread) == (current.node, current.thread) for node in nodes):
                raise ImportRefusedError(f"node {node[1]} is there twice", line)
            nodes.append(current)
        elif summary := _SUMMARY.fullmatch(content.strip()):
            current, total = None, summary[1] == "total"
            if not total:
                if mean:
                    raise ImportRefusedError("a second FUNCTION SUMMARY (mean)", line)
                current = mean = _Section(None, (0, 0), line)
        elif not content.strip():
            continue
        elif row := _ROW.fullmatch(content):
            if _AGAIN.search(row["name"]):
                again += 1
            elif current is not None:
                current.rows.append(_function(row, current.node, line))
                _check_row(current, row, line)
        elif (current is not None or total) and not _HEADING.match(content):
            if re.match(r"\s*\d", content):
                raise ImportRefusedError("a row that cannot be read: cut off?", line)
            current, total = None, False  # what follows is another program's
    return nodes, mean, again


def _function(row: "re.Match[str]", node: int | None, line: int) -> Function:
    return Function(
        row["name"],
        node,
        "cpu",
        float(row["calls"]),
        _seconds(row["exclusive"], line),
        _seconds(row["inclusive"], line),
    )


def _check_row(section: _Section, row: "re.Match[str]", line: int) -> None:
    """Rows are sorted by inclusive time, and state their share of the first."""
    last = section.rows[-1]
    whole, first = last.inclusive_s or 0.0, section.rows[0].inclusive_s or 0.0
    if last.exclusive_s > whole * 1.01 + 1e-6:
        raise ImportRefusedError("more time exclusive than inclusive", line)
    half = _half(row["inclusive"])
    if len(section.rows) == 1:
        section.half = half
    low = (whole - half) / (first + section.half)
    high = (whole + half) / max(first - section.half, 1e-9)
    if not 100 * low - 0.06 <= float(row["share"]) <= 100 * high + 0.06:
        raise ImportRefusedError(
            f"states {row['share']} % of all, which its time is not: lines are missing or swapped",
            line,
        )
    if any(other.name == last.name for other in section.rows[:-1]):
        raise ImportRefusedError(f"{last.name[:60]!r} is there twice", line)


def _seconds(text: str, line: int) -> float:
    """Seconds of milliseconds (1,234 or 0.05), or of minutes and hours (2:11.067, 1:02:11.067)."""
    if clock := _CLOCK.fullmatch(text):
        return int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + float(clock[3])
    if not _PLAIN.fullmatch(text):
        raise ImportRefusedError(f"{text[:30]!a} is no time", line)
    return float(text.replace(",", "")) / 1000


def _half(text: str) -> float:
    """Half of the last digit of a time, in seconds."""
    return 0.0005 if ":" in text else half_unit(text.replace(",", "")) / 1000
