"""TAU's profiles as ``pprof`` prints them: a section for each node, context and thread, then
``FUNCTION SUMMARY (mean)`` and ``(total)``.

Rows such as ``MPI_Bcast() [ <comm> = <ranks: 0, 1> ... ]`` and ``main => solve`` say again what
their function's own row says; they are skipped.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from scalesweep.analysis.pop import rank_factors
from scalesweep.analysis.profile import NOT_LISTED, Function, Profile, RankTimes
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.base import CLOSE, MPI, each, lines_of, times_of, unlisted

_SECTION = re.compile(
    r"NODE (?P<node>\d+);CONTEXT (?P<context>\d+);THREAD (?P<thread>\d+):\s*"
    r"|FUNCTION SUMMARY \((?P<summary>mean|total)\):\s*"
)
_TIME = r"[\d.,:]+(?:[eE][+-]?\d{1,3})?"
_ROW = re.compile(
    rf"\s*\d+\.\d+\s+(?P<own>{_TIME})\s+(?P<all>{_TIME})\s+(?P<calls>[\d.eE+]+)\s+[\d.eE+]+"
    r"\s+[\d.eE+-]+\s(?P<name>.*\S)\s*"
)
_HEADING = re.compile(r"\s*(?:%Time\s+Exclusive|msec\s+total msec|-{20,})")
_MEAN = -1
_AGAIN = re.compile(r"\[ .*\]$| => ")


def sign(head: str) -> bool:
    """Whether a file begins as pprof's output does."""
    return any(_SECTION.fullmatch(line.strip()) for line in head.splitlines()[:200])


def _profiles(file: Path, ranks: int | None) -> Iterable[Profile]:
    """By node if all nodes have a section, else the mean over ``ranks``.

    Factors need a section of every node whose rows add up to its time. Raises ImportRefusedError
    if a section is cut, a node is missing, or the mean is not that of the nodes.
    """
    sections = _sections(lines_of(file))
    # The first thread of a node is its process; others work for it at the same time.
    first = {key[0]: rows for key, rows in sections.items() if key[1:] == (0, 0)}
    means = [first.pop(_MEAN)] if _MEAN in first else []
    if missing := [node for node in range(len(first)) if node not in first]:
        raise ImportRefusedError(f"node {missing[0]} is missing")
    if ranks and first and ranks != len(first):
        raise ImportRefusedError(f"has {len(first)} nodes, but --ranks {ranks}")
    shown = [first[node] for node in range(len(first))] or means
    elapsed, mpi = np.array([_times(rows) for rows in shown]).reshape(-1, 2).T
    if not shown or not (elapsed > 0).all() or (mpi > elapsed * (1 + CLOSE)).any():
        raise ImportRefusedError("no section, functions without time (cut off?), or MPI's above it")
    threads = len(sections) - len(first) - len(means)
    for mean in means if first and not threads else ():
        for own, theirs in zip(_times(mean), (elapsed.mean(), mpi.mean()), strict=True):
            if abs(own - theirs) > CLOSE * elapsed.mean():
                raise ImportRefusedError(
                    f"the mean has {own:.4g} s, the nodes {theirs:.4g} s on average: sections or "
                    "rows are missing or changed"
                )
    useful = np.maximum(elapsed - mpi, 0.0)
    # What is not listed has an entry, so that shares stay right.
    rests = [unlisted(_times(rows)[0], (row.exclusive_s for row in rows)) for rows in shown]
    rows = [row for section in shown for row in section]
    rows += [
        Function(NOT_LISTED, node if first else None, "cpu", 1, rest, rest)
        for node, rest in enumerate(rests)
        if rest
    ]
    notes: dict[str, object] = {"times": "of each node" if first else "means over all ranks"}
    if threads:
        notes["threads"] = f"{threads} further threads, whose times are not added"
    # What is not listed may be MPI: without it nothing is known of the useful time.
    whole = bool(first) and bool((useful > 0).all()) and not any(rests)
    runtime = float(elapsed.max())
    yield Profile(
        tool="tau", file=file, ranks=len(first) or ranks,
        rank_times=RankTimes(elapsed, useful, mpi) if whole else None,
        functions=tuple(rows), notes=notes,
        metrics=times_of(
            runtime, float(mpi.mean()), float(useful.mean()),
            rank_factors(useful, runtime) if whole else {},
        ),
    )  # fmt: skip


read = each(_profiles)


def _times(rows: Sequence[Function]) -> tuple[float, float]:
    """Seconds of a section (the inclusive time of what contains all others), and those of MPI."""
    mpi = sum(row.exclusive_s for row in rows if MPI.match(row.name))
    return max((row.inclusive_s or 0.0 for row in rows), default=0.0), mpi


def _sections(lines: Iterable[str]) -> dict[tuple[int, int, int], list[Function]]:
    """The rows of each section by node, context and thread; of the mean over all, by ``_MEAN``."""
    sections: dict[tuple[int, int, int], list[Function]] = {}
    current: list[Function] | None = None
    node = _MEAN
    for line, content in enumerate(lines, 1):
        if match := _SECTION.fullmatch(content.strip()):
            node, context, thread = (
                int(match[name] or default)
                for name, default in (("node", _MEAN), ("context", 0), ("thread", 0))
            )
            current = None
            if match["summary"] == "total":
                continue
            if (node, context, thread) in sections:
                raise ImportRefusedError("a section is there twice", line)
            sections[node, context, thread] = current = []
        elif current is not None and (row := _ROW.fullmatch(content)):
            if not _AGAIN.search(row["name"]):
                own, total = _seconds(row["own"], line), _seconds(row["all"], line)
                rank = None if node == _MEAN else node
                calls = float(row["calls"])
                current.append(Function(row["name"], rank, "cpu", calls, own, total))
        elif current is not None and content.strip() and not _HEADING.match(content):
            if re.match(r"\s*\d", content):
                raise ImportRefusedError("a row that cannot be read: cut off?", line)
            current = None  # what follows is another program's
    return sections


def _seconds(text: str, line: int) -> float:
    """Seconds of milliseconds (1,234 or 0.05), or of minutes and hours (2:11.067, 1:02:11.067)."""
    try:
        if ":" not in text:
            return float(text.replace(",", "")) / 1000
        *hours, minutes, seconds = text.split(":")
        return sum(int(it) for it in hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        raise ImportRefusedError(f"{text[:30]!a} is no time", line) from None
