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
from scalesweep.importers.profiles.source import ReadResult, lines_of, metric, read_each, text_of

_COMPLETE = 0.01  # of the time: what the digits of a whole table leave open
_NODE = re.compile(r"NODE (\d{1,7});CONTEXT (\d{1,7});THREAD (\d{1,7}):\s*")
_SUMMARY = re.compile(r"FUNCTION SUMMARY \((mean|total)\):\s*")
_TIME = r"[\d.,:]+(?:[eE][+-]?\d{1,3})?"
_ROW = re.compile(
    rf"\s*(?P<share>\d+\.\d+)\s+(?P<own>{_TIME})\s+(?P<all>{_TIME})\s+(?P<calls>[\d.eE+]+)\s+[\d.eE+]+"
    r"\s+[\d.eE+-]+\s(?P<name>.*\S)\s*"
)
_HEADING = re.compile(r"\s*(?:%Time\s+Exclusive|msec\s+total msec|-{20,})")
_AGAIN = re.compile(r"\[ .*\]$| => ")
_MPI = re.compile(r"P?MPI_\w+")


@dataclass
class _Section:
    """Rows of a node's thread, or of the mean over all."""

    node: int | None
    thread: tuple[int, int]
    line: int
    rows: list[Function] = field(default_factory=list)

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
    ImportRefusedError if a section is cut off, a node is missing, or the mean is not the nodes'.
    """
    sections = _sections(lines_of(text_of(file)))
    if empty := next((section for section in sections if not section.rows), None):
        raise ImportRefusedError("a section without a function: cut off?", empty.line)
    # The first thread of a node is its process; others work for it at the same time.
    first = {it.node: it for it in sections if it.node is not None and it.thread == (0, 0)}
    if missing := [node for node in range(len(first)) if node not in first]:
        raise ImportRefusedError(f"node {missing[0]} is missing")
    if ranks and first and ranks != len(first):
        raise ImportRefusedError(f"has {len(first)} nodes, but --ranks {ranks}")
    mean = next((section for section in sections if section.node is None), None)
    shown = [first[node] for node in range(len(first))] or ([mean] if mean else [])
    elapsed = np.array([section.elapsed for section in shown])
    mpi = np.array([section.mpi for section in shown])
    if not shown or not (elapsed > 0).all() or (mpi > elapsed * 1.01).any():
        raise ImportRefusedError("no section, functions without time, or MPI's above all of it")
    threads = len(sections) - len(first) - (mean is not None)
    apart = [(mean.elapsed, elapsed.mean()), (mean.mpi, mpi.mean())] if mean and first else []
    for own, theirs in apart if not threads else ():
        if abs(own - theirs) > _COMPLETE * elapsed.mean():
            raise ImportRefusedError(
                f"the mean has {own:.4g} s, the nodes {theirs:.4g} s on average: sections or rows "
                "are missing or changed"
            )
    useful = np.maximum(elapsed - mpi, 0.0)
    left = [section.unlisted / section.elapsed for section in shown]
    notes: dict[str, object] = {"times": "of each node" if first else "means over all ranks"}
    if threads:
        notes["threads"] = f"{threads} further threads, whose times are not added"
    if max(left) > _COMPLETE:
        notes["not_listed"] = f"up to {100 * max(left):.1f} % of a node's time is in no row"
    # What is not listed may be MPI: without it nothing is known of the useful time.
    whole = bool(first) and bool((useful > 0).all()) and max(left) <= _COMPLETE
    return Profile(
        tool="tau",
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


def _with_rest(section: _Section) -> list[Function]:
    """The rows, and what none of them has as an entry of its own, so that shares stay right."""
    rest = section.unlisted
    if rest <= _COMPLETE * section.elapsed:
        return section.rows
    return [*section.rows, Function(NOT_LISTED, section.node, "cpu", 1, rest, rest)]


def _sections(lines: Sequence[str]) -> list[_Section]:
    """Sections of nodes and of the mean."""
    sections: list[_Section] = []
    current: _Section | None = None
    for line, content in enumerate(lines, 1):
        node, summary = _NODE.fullmatch(content.strip()), _SUMMARY.fullmatch(content.strip())
        if node or summary:
            current = None
            if node:
                current = _Section(int(node[1]), (int(node[2]), int(node[3])), line)
            elif summary and summary[1] == "mean":
                current = _Section(None, (0, 0), line)
            if current:
                if any((it.node, it.thread) == (current.node, current.thread) for it in sections):
                    raise ImportRefusedError("a section is there twice", line)
                sections.append(current)
        elif current and (row := _ROW.fullmatch(content)):
            if not _AGAIN.search(row["name"]):
                current.rows.append(_function(row, current, line))
        elif current and content.strip() and not _HEADING.match(content):
            if re.match(r"\s*\d", content):
                raise ImportRefusedError("a row that cannot be read: cut off?", line)
            current = None  # what follows is another program's
    return sections


def _function(row: "re.Match[str]", section: _Section, line: int) -> Function:
    own, all_of_it = _seconds(row["own"], line), _seconds(row["all"], line)
    if own > all_of_it * 1.01 + 1e-6:
        raise ImportRefusedError("more time exclusive than inclusive", line)
    first = (section.rows[0].inclusive_s if section.rows else all_of_it) or 1.0
    if abs(100 * all_of_it / first - float(row["share"])) > 0.1 + 0.06 / first:
        words = (
            f"states {row['share']} % of all, which its time is not: lines are missing or swapped"
        )
        raise ImportRefusedError(words, line)
    return Function(row["name"], section.node, "cpu", float(row["calls"]), own, all_of_it)


def _seconds(text: str, line: int) -> float:
    """Seconds of milliseconds (1,234 or 0.05), or of minutes and hours (2:11.067, 1:02:11.067)."""
    try:
        if ":" not in text:
            return float(text.replace(",", "")) / 1000
        *hours, minutes, seconds = text.split(":")
        return sum(int(it) for it in hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        raise ImportRefusedError(f"{text[:30]!a} is no time", line) from None
