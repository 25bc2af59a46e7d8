"""Findings on traces: ranks that come late, and the rules that Horovod's maintainers apply by hand.

A profile is one run without an interval: every sentence is a note, but for what Horovod warns of.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scalesweep.analysis.horovod_timeline import COPIES, IDLE, NEGOTIATION, QUEUE, REDUCTION, WAIT
from scalesweep.aspects.profiles.timeline import TimelinePhase
from scalesweep.aspects.profiles.traces import RankLateness
from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, NOTE, Finding, Rule, number_of

TIMELINE, WARNED, LAST, LATE = "timeline", "stall warnings", "last to negotiate", "late ranks"
# A share of a step below this is not worth a sentence, and one that dominates begins here.
NOTABLE, DOMINANT = 0.1, 0.5
ENOUGH_TICKS = 0.5  # of the negotiations: fewer with ticks are those of the start
LATE_SHARE = 0.01  # of a step
MAX_RUNS = 3
_HOROVOD = (NEGOTIATION, QUEUE, COPIES, REDUCTION, WAIT)
# What it means if a phase takes most of Horovod's time (threads: docs/guide/profiles.md).
_MEANS = {
    NEGOTIATION: "a rank arrives late",
    QUEUE: "the network is slow, or calls are small and many",
    WAIT: "the device still computes the gradient",
    REDUCTION: "the network binds",
    IDLE: "input, the forward pass or too many threads take the time",
}
_WARNED = {
    "stalls": ("ranks missing for long", "check that all ranks have as many batches"),
    "evictions": ("responses evicted from the cache", "raise HOROVOD_CACHE_CAPACITY"),
}


def timeline_signs(results: ExperimentResults) -> list[Finding]:
    """What the timelines of an experiment show, at the largest scale first."""
    runs: dict[str, list[TimelinePhase]] = {}
    for row in results.of(TimelinePhase):
        runs.setdefault(row.run_id, []).append(row)

    def scale(rows: Sequence[TimelinePhase]) -> float:
        value = rows[0].point.get(results.scale)
        return float(value) if finite(value) else 0.0

    shown = sorted(runs.values(), key=scale, reverse=True)[:MAX_RUNS]
    return [finding for rows in shown for finding in _said(results, rows)]


def _said(results: ExperimentResults, rows: Sequence[TimelinePhase]) -> Iterator[Finding]:
    """What a timeline with these shares of a step shows."""
    row, key = rows[0], {"run_id": rows[0].run_id}
    for name, (subject, then) in _WARNED.items():
        if count := getattr(row, name):
            yield _finding(results, WARNED, ATTENTION, row, key, subject, {"count": count}, then)
    shares = {each.phase: each.share for each in rows if each.share is not None}
    known = {phase: shares[phase] for phase in _HOROVOD if phase in shares}
    lead = max(known, key=lambda phase: known[phase], default=IDLE)
    ticked = row.ticked >= ENOUGH_TICKS * row.negotiations
    if lead in _MEANS and known.get(lead, 0.0) >= NOTABLE:
        which = "run again with HOROVOD_CACHE_CAPACITY=0 to see which"
        then = which if lead == NEGOTIATION and not ticked else ""
        yield _finding(results, TIMELINE, NOTE, row, key, lead, {"share": known[lead]}, then)
        if lead == NEGOTIATION and ticked:
            numbers = {"last": row.last, "ticked": row.ticked, "late_ms": row.late_ms}
            yield _finding(results, LAST, NOTE, row, key, f"rank {row.last_rank}", numbers)
    if shares.get(IDLE, 0.0) >= DOMINANT:
        yield _finding(results, TIMELINE, NOTE, row, key, IDLE, {"share": shares[IDLE]})


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
            results, LATE, NOTE, row,
            {"run_id": row.run_id, "group": row.group, "rank": row.rank}, f"rank {row.rank}",
            {"last_share": row.last_share, "late_ms": row.late_median_ms},
        )
        for row in late
        if row.run_id in shown
    ]  # fmt: skip


def _finding(
    results: ExperimentResults,
    rule: str,
    state: str,
    row: TimelinePhase | RankLateness,
    key: Mapping[str, Any],
    subject: str,
    numbers: Mapping[str, float | None],
    then: str = "",
) -> Finding:
    """A finding on a profiled run; of results of one source it has the source."""
    source = {"source": next(iter(results.sources))} if len(results.sources) == 1 else {}
    group = f"group {row.group}" if isinstance(row, RankLateness) and row.group else "its group"
    return Finding(
        results.name, rule, state, subject=subject, next=then,
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
    Rule(WARNED, None, says={ATTENTION: "Horovod warned{at} of {subject}, {count} times."}),
    Rule(
        LAST, None,
        says={NOTE: "In Horovod's timeline{at}, {subject} is last in {last} of {ticked} "
              "negotiations, {late_ms} after the median rank."},
    ),
    Rule(
        LATE, late_ranks,
        says={NOTE: "In a trace{at}, {subject} is last in {last_share:%} of the collectives of "
              "{group}, {late_ms} late (median)."},
        next={NOTE: "look for other work, input or a slow link on its host"},
    ),
)  # fmt: skip
