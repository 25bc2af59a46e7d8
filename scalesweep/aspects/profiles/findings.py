"""Findings on traces: ranks that come late, and what takes most of Horovod's time.

A profile is one run without an interval: every sentence is a note.
"""

from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.horovod_timeline import IDLE, NEGOTIATION, QUEUE, REDUCTION, WAIT
from scalesweep.aspects.profiles.timeline import TimelinePhase
from scalesweep.aspects.profiles.traces import RankLateness
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding, Rule, number_of

TIMELINE, LATE = "timeline", "late ranks"
NOTABLE = 0.1  # a share of a step below this is not worth a sentence
LATE_SHARE = 0.01  # of a step
MAX_RUNS = 3
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
        _finding(results, TIMELINE, row, {"run_id": row.run_id}, row.phase, {"share": row.share})
        for row in leads[-MAX_RUNS:]
        if row.phase in _MEANS
    ]


def late_ranks(results: ExperimentResults) -> list[Finding]:
    """Ranks that are late throughout a recording, by a part of a step that is worth a sentence."""
    late = [
        row
        for row in results.of(RankLateness)
        if row.latest and row.step_ms and row.late_median_ms >= LATE_SHARE * row.step_ms
    ]
    shown = list(dict.fromkeys(row.run_id for row in late))[:MAX_RUNS]
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
        TIMELINE, timeline_signs,
        says={NOTE: "Horovod's timeline{at}: {subject} takes {share:%} of a step; {means}."},
    ),
    Rule(
        LATE, late_ranks,
        says={NOTE: "In a trace{at}, {subject} is last in {last_share:%} of the collectives of "
              "{group}, {late_ms} late (median)."},
        next={NOTE: "look for other work, input or a slow link on its host"},
    ),
)  # fmt: skip
