"""Where the time of profiled runs goes: the tables `parts` (by named part of the program) and
`timeline` (Horovod's, by phase), and what is said of them and of late ranks.

Parts are named by regular expressions in benchmark.yaml (docs/guide/profiles.md); what no pattern
takes is ``other``. Timelines are files of runs under ``profile: horovod_timeline``, or what the
import noted in records. A profile is one run without an interval: every sentence is a note.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.profile import OTHER
from scalesweep.analysis.stats import Estimate, mean_of
from scalesweep.analysis.types import Floats
from scalesweep.aspects.profiles.functions import (
    FunctionTime,
    done_runs,
    function_rows,
    head_of,
    noted,
    profile_files,
)
from scalesweep.aspects.profiles.traces import (
    CollectiveTime,
    RankLateness,
    TraceOperation,
    TracePart,
    trace_rows,
)
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import percent
from scalesweep.core.profilers import HOROVOD_TIMELINE, TIMELINE
from scalesweep.experiment.by_kind import table_by_kind
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import NOTE, Finding, Rule, number_of
from scalesweep.importers.profiles.horovod_timeline import (
    IDLE,
    NEGOTIATION,
    QUEUE,
    REDUCTION,
    WAIT,
    read_timeline,
    timeline_rows,
)
from scalesweep.importers.profiles.horovod_timeline import NOTE as TIMELINE_NOTE
from scalesweep.table.declared import DeclaredRow, PointRow, column
from scalesweep.tables.bookkeeping import PARTS
from scalesweep.tables.making import Maker, TableInputs, point_columns


@dataclass(frozen=True, kw_only=True)
class PartTime(PointRow, table="parts"):
    """A part of a program at a point; one that the point does not have is 0 of it: a profile lists
    what took time."""

    part: str = column("the part of the program, by the patterns of its benchmark.yaml")
    runs: int = column("runs with a profile", "1")
    seconds: Estimate = column("time of a rank, mean over the repeats", "s")
    share: Estimate | None = column("share of the time of all parts", "1")


def part_rows(inputs: TableInputs) -> Iterator[PartTime]:
    """A row per point and part, of points whose runs have parts."""
    data = inputs.data
    parts_of_row = data.notes(PARTS)
    names = sorted(
        {name for parts in parts_of_row.values() for name in parts}, key=lambda n: (n == OTHER, n)
    )
    for point in inputs.points:
        runs = [parts_of_row[row] for row in point.rows.tolist() if row in parts_of_row]
        totals = np.array([sum(parts.values()) for parts in runs])
        there = totals > 0
        for name in names if runs else ():
            seconds = np.array([parts.get(name, 0.0) for parts in runs])
            yield PartTime(
                **point_columns(point),
                part=name,
                runs=len(runs),
                seconds=_over(seconds),
                share=_over(seconds[there] / totals[there]) if there.any() else None,
            )


def _over(values: Floats) -> Estimate:
    """Mean and its 95 % interval over the repeats."""
    # Nothing in any repeat is no measurement of a spread.
    return mean_of(values) if values.any() else Estimate(0.0)


MAX_RUNS = 12


@dataclass(frozen=True, kw_only=True)
class TimelinePhase(DeclaredRow, table="timeline", leading=("run_id",)):
    """A phase of a step in a run with a timeline; what it does not show is missing."""

    run_id: str = column("the run with a timeline")
    phase: str = column("what Horovod does: negotiation, queue, wait for data, copies, ... idle")
    share: float | None = column("share of a step", "1")
    ms: float | None = column("time per step", "ms")
    steps: int = column("steps of the whole run", "1")


def phase_rows(inputs: TableInputs) -> Iterator[TimelinePhase]:
    """A row per run with a timeline, of at most MAX_RUNS, and phase; those that imports noted in
    records too."""
    data = inputs.data
    if inputs.runs is None:
        return
    for run in done_runs(data, HOROVOD_TIMELINE)[:MAX_RUNS]:
        try:
            files = profile_files(inputs.runs / run["run_id"])
            (file,) = (path for path in files if path.name == TIMELINE)
            rows = timeline_rows(read_timeline(file.read_text()))
        except (UserError, OSError, ValueError):
            data.unread.append(run["run_id"])
            continue
        yield from (TimelinePhase(**head_of(run, data.axes), **row) for row in rows)
    for imported, rows in noted(inputs, TIMELINE_NOTE, MAX_RUNS):
        yield from (TimelinePhase(**head_of(imported, data.axes), **row) for row in rows)


MAKERS = (
    Maker(PartTime, part_rows),
    Maker(FunctionTime, function_rows),
    Maker(TimelinePhase, phase_rows),
    Maker((TracePart, TraceOperation, CollectiveTime, RankLateness), trace_rows),
)

PROFILES = {
    FunctionTime: "Means over the ranks. Times of calls of an API and of ranges hold those of "
    "others.",
    TracePart: "The share of a step in which something of a part runs that no part above it "
    "covers. On CPUs TensorFlow's profiler does not record Horovod's exchange: it is in the rest.",
    CollectiveTime: "Exposed: no computation runs meanwhile.",
    RankLateness: "Clocks are aligned on the ends of the calls. Latest: late throughout.",
    TraceOperation: "Means over the ranks, without the operations that each calls. Threads and "
    "streams of a device add up.",
    TimelinePhase: "Of rank 0. Phases of different tensors overlap, so shares do not add up.",
}

WHAT, LATE = "timeline", "late ranks"
NOTABLE = 0.1  # a share of a step below this is not worth a sentence
LATE_SHARE = 0.01  # of a step
MAX_SAID = 3
# What it means if a phase takes most of Horovod's time (docs/guide/profiles.md).
_MEANS = {
    NEGOTIATION: "a rank arrives late",
    QUEUE: "the network is slow, or calls are small and many",
    WAIT: "the device still computes the gradient",
    REDUCTION: "the network binds",
}


def timeline_signs(results: ExperimentResults) -> list[Finding]:
    """The phase of Horovod that takes most of a step, of each timeline."""
    runs: dict[str, list[TimelinePhase]] = {}
    for row in results.of(TimelinePhase):
        if row.phase != IDLE and (row.share or 0.0) >= NOTABLE:
            runs.setdefault(row.run_id, []).append(row)
    leads = [max(rows, key=lambda row: row.share or 0.0) for rows in runs.values()]
    return [
        _finding(results, WHAT, row, {"run_id": row.run_id}, row.phase, {"share": row.share})
        for row in leads[-MAX_SAID:]
        if row.phase in _MEANS
    ]


def late_ranks(results: ExperimentResults) -> list[Finding]:
    """Ranks that are late throughout a recording, by a part of a step that is worth a sentence."""
    late = [
        row
        for row in results.of(RankLateness)
        if row.latest and row.step_ms and row.late_median_ms >= LATE_SHARE * row.step_ms
    ]
    shown = list(dict.fromkeys(row.run_id for row in late))[:MAX_SAID]
    return [
        _finding(
            results, LATE, row, {"run_id": row.run_id, "group": row.group, "rank": row.rank},
            f"rank {row.rank}", {"last_share": row.last_share, "late_ms": row.late_median_ms},
            f"group {row.group}" if row.group else "its group",
        )
        for row in late
        if row.run_id in shown
    ]  # fmt: skip


def _finding(
    results: ExperimentResults, rule: str, row: TimelinePhase | RankLateness,
    key: Mapping[str, Any], subject: str, numbers: Mapping[str, float | None], group: str = "",
) -> Finding:  # fmt: skip
    """A note on a profiled run; of results of one source it has the source."""
    source = {"source": next(iter(results.sources))} if len(results.sources) == 1 else {}
    return Finding(
        results.name, rule, NOTE, subject=subject,
        words={
            "at": f" at {results.describe(row.point)}" if results.axes else "",
            "means": _MEANS.get(subject, ""), "group": group,
        },
        numbers=tuple(
            number_of(name, value, "ms" if name.endswith("_ms") else "1")
            for name, value in numbers.items()
        ),
        evidence={"experiment": results.name, "table": row.TABLE, "key": {**key, **source}},
    )  # fmt: skip


RULES = (
    Rule(
        WHAT, timeline_signs,
        says={NOTE: "Horovod's timeline{at}: {subject} takes {share:%} of a step; {means}."},
    ),
    Rule(
        LATE, late_ranks,
        says={NOTE: "In a trace{at}, {subject} is last in {last_share:%} of the collectives of "
              "{group}, {late_ms} late (median)."},
        next={NOTE: "look for other work, input or a slow link on its host"},
    ),
)  # fmt: skip


_NOTE = (
    "Share of the time of a rank by part of the program, from profiles of other tools; "
    "means over ranks and repeats with 95 % intervals."
)

_FUNCTIONS = (
    "Functions: the time that each spends in itself. Runs under a profiler are slower than those "
    "that were measured."
)


def part_table(results: ExperimentResults, limit: int) -> Table | None:
    """Share of every part of every point; None without profiles."""
    return table_by_kind(results, limit, results.of(PartTime), "part", "share", percent)


def _notes(results: ExperimentResults) -> list[str]:
    return [
        *([_NOTE] if results.rows("parts") else []),
        *([_FUNCTIONS] if results.of(FunctionTime) else []),
    ]


SECTION = Section("Parts", part_table, _notes)
