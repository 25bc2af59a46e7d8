"""Score-P's profiles as ``scorep-score -r profile.cubex`` prints them: groups, then regions.

``flt type max_buf[B] visits time[s] time[%] time/visit[us] region``, with a column ``hits`` of
sampled profiles (SCOREP_Score_Estimator.cpp; Score-P user manual, "Scoring a Profile
Measurement"). Times are those of a region itself, added up over all processes and threads.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scalesweep.analysis.profile import NOT_LISTED, Function, Profile
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.source import (
    ReadResult,
    lines_of,
    metric,
    read_each,
    text_of,
)

TOOL = "scorep"
_HEADING = re.compile(
    r"(?i)\s*flt\s+type\s+max_buf\[B\]\s+visits\s+(?P<hits>hits\s+)?time\[s\]\s+time\[%\]\s+"
    r"time/visit\[us\]\s+region\s*"
)
_NUMBER = r"\d[\d,]*"
_ROW = re.compile(
    r"\s*[-+*]?\s*(?P<type>[A-Z_]{2,12})\s+[\d,]+\s+(?P<visits>\d[\d,]*)(?P<hits>\s+\d[\d,]*)?"
    r"\s+(?P<time>\d+\.\d+)\s+(?P<share>\d+\.\d+)\s+(?P<each>\d+\.\d+)\s+(?P<region>\S.*?)\s*"
)
_BEGINS = re.compile(r"\s*[-+*]?\s*[A-Z_]{2,12}\s+[\d,]+\s")
_ALL = "ALL"
_CLOSE = 0.005  # of the time: what rounded times of groups and regions may lack of the whole


@dataclass(frozen=True)
class _Row:
    """A group or a region, summed over all processes and threads."""

    kind: str
    region: str
    visits: float
    seconds: float
    share: float  # as it states it, %
    line: int

    @property
    def is_group(self) -> bool:
        """Whether it sums up regions, filtered ones included."""
        return self.region in (self.kind, f"{self.kind}-FLT", "FLT")


def recognise(head: str) -> bool:
    """Whether a file has the heading of scorep-score near its begin."""
    return any(_HEADING.fullmatch(line) for line in head.splitlines()[:60])


def read(files: Sequence[Path], ranks: int | None = None) -> ReadResult:
    """A profile of each file; ``ranks``, as no file says how many there were."""
    return read_each(files, lambda file: [_profile(file, ranks)])


def _profile(file: Path, ranks: int | None) -> Profile:
    """The regions of a file as means over ``ranks``. Raises ImportRefusedError."""
    rows = _rows(lines_of(text_of(file)))
    whole = next((row for row in rows if (row.kind, row.region) == (_ALL, _ALL)), None)
    if whole is None:
        raise ImportRefusedError("no row of ALL: cut off?")
    if whole.seconds <= 0:
        raise ImportRefusedError("no time was spent in any region", whole.line)
    regions = [row for row in rows if not row.is_group]
    if not regions:
        raise ImportRefusedError("lists groups only: import what `scorep-score -r` prints")
    counted = sum(row.seconds for row in regions)
    slack = _CLOSE * whole.seconds + 0.005 * len(rows)
    if counted > whole.seconds + slack:
        raise ImportRefusedError(
            f"regions take {counted:.2f} s, more than all ({whole.seconds:.2f} s): rows are there "
            "twice"
        )
    count = ranks or 1
    functions = [
        Function(row.region, None, "cpu", row.visits / count, row.seconds / count, None)
        for row in regions
    ]
    notes: dict[str, object] = {
        "times": "sums over all processes and threads, divided by the ranks",
    }
    mpi = max(_group(rows, "MPI"), sum(row.seconds for row in regions if row.kind == "MPI"))
    if (rest := whole.seconds - counted) > slack:
        notes["not_listed"] = f"{100 * rest / whole.seconds:.1f} % of the time is in no row"
        # Of an excerpt the groups still say how much of it is MPI.
        hidden = min(mpi - sum(row.seconds for row in regions if row.kind == "MPI"), rest)
        functions += [
            Function(name, None, "cpu", None, seconds / count, None)
            for name, seconds in ((f"MPI_* {NOT_LISTED}", hidden), (NOT_LISTED, rest - hidden))
            if seconds > 0
        ]
    return Profile(
        tool=TOOL,
        file=file,
        ranks=ranks,
        functions=tuple(functions),
        metrics={
            "profiled_time": metric(whole.seconds / count, "s", "lower", "rank"),
            "mpi_time": metric(mpi / count, "s", "lower", "rank"),
        },
        notes=notes,
    )


def _group(rows: Sequence[_Row], kind: str) -> float:
    """The time of a group; 0 of one that is not there."""
    return next((row.seconds for row in rows if row.kind == row.region == kind), 0.0)


def _rows(lines: Sequence[str]) -> list[_Row]:
    """The rows below the heading; raises ImportRefusedError for one that contradicts itself."""
    rows: list[_Row] = []
    headed = False
    for line, content in enumerate(lines, 1):
        if heading := _HEADING.fullmatch(content):
            if headed:
                raise ImportRefusedError("a second table: one file a profile", line)
            headed, sampled = True, bool(heading["hits"])
        elif headed and (row := _ROW.fullmatch(content)):
            if sampled != bool(row["hits"]):
                raise ImportRefusedError("a row does not fit the heading", line)
            rows.append(_row(row, line))
        elif headed and _BEGINS.match(content):
            raise ImportRefusedError("a row that cannot be read: cut off?", line)
    total = next((row.seconds for row in rows if row.region == _ALL), 0.0)
    for entry in rows:
        share = 100 * entry.seconds / total if total else 0.0
        if total and abs(share - entry.share) > 0.06 + 0.6 / total:
            raise ImportRefusedError(
                f"states {entry.share} % of all, which its time is not: lines are missing or "
                "swapped",
                entry.line,
            )
    return rows


def _row(match: "re.Match[str]", line: int) -> _Row:
    visits = float(match["visits"].replace(",", ""))
    seconds, each = float(match["time"]), float(match["each"])
    # Rounded to hundredths of a second and of a microsecond; hits, not visits, share the time of
    # samples.
    slack = 0.006 + 0.006e-6 * visits + 0.001 * seconds
    if not match["hits"] and visits and abs(seconds - visits * each * 1e-6) > slack:
        raise ImportRefusedError("time is not visits x time/visit: the row is damaged", line)
    return _Row(match["type"], match["region"], visits, seconds, float(match["share"]), line)
