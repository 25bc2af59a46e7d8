"""Findings on traces: ranks that come late, and the rules that Horovod's maintainers apply by hand.

A profile is one run without an interval: every sentence is a note, but for what Horovod warns of.
"""

from collections.abc import Iterator, Mapping, Sequence

from scalesweep.analysis.horovod_timeline import COPIES, IDLE, NEGOTIATION, QUEUE, REDUCTION, WAIT
from scalesweep.aspects.profiles.timeline import TimelinePhase
from scalesweep.aspects.profiles.traces import RankLateness
from scalesweep.core.formatting import counted, finite, number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, NOTE, Finding, Rule, marked

TIMELINE, LATE = "timeline", "late ranks"
# A share of a step below this is not worth a sentence, and one that dominates begins here.
NOTABLE, DOMINANT = 0.1, 0.5
ENOUGH_TICKS = 0.5  # of the negotiations: fewer with ticks are those of the start
LATE_SHARE = 0.01  # of a step
MAX_RUNS = 3
_HOROVOD = (NEGOTIATION, QUEUE, COPIES, REDUCTION, WAIT)
# What it means if a phase takes most of Horovod's time (threads: docs/guide/profiles.md).
_MEANS = {
    NEGOTIATION: "negotiation takes {share} of a step: a rank arrives late",
    QUEUE: "operations queue for {share} of a step behind the call before: the network, or too "
    "many small calls",
    WAIT: "operations wait for data for {share} of a step: the device still computes the gradient",
    REDUCTION: "the reduction itself takes {share} of a step",
    IDLE: "Horovod is idle for {share} of a step: input, the forward pass or too many threads",
}


def timeline_signs(results: ExperimentResults) -> list[Finding]:
    """What the timelines of an experiment show, at the largest scale first."""
    runs: dict[str, list[TimelinePhase]] = {}
    for row in results.of(TimelinePhase):
        runs.setdefault(row.run_id, []).append(row)

    def scale(rows: Sequence[TimelinePhase]) -> float:
        value = rows[0].point.get(results.scale)
        return float(value) if finite(value) else 0.0

    findings = []
    for rows in sorted(runs.values(), key=scale, reverse=True)[:MAX_RUNS]:
        shares = {row.phase: row.share for row in rows if row.share is not None}
        where = f"{results.describe(rows[0].point)}: " if results.axes else ""
        key = {"run_id": rows[0].run_id}
        findings += [
            _finding(
                results, TIMELINE, level, f"timeline of {where}{text}.", TimelinePhase, key, shares
            )
            for level, text in _said(rows[0], shares)
        ]
    return findings


def _said(row: TimelinePhase, shares: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Level and words of what a timeline with these shares of a step shows."""
    if row.stalls:
        warnings = counted(row.stalls, "warning")
        yield ATTENTION, f"ranks were missing for long ({warnings}): their batches may differ"
    if row.evictions:
        warnings = counted(row.evictions, "warning")
        yield ATTENTION, f"more tensors than HOROVOD_CACHE_CAPACITY ({warnings}): raise it"
    known = {phase: shares[phase] for phase in _HOROVOD if phase in shares}
    lead = max(known, key=lambda phase: known[phase], default=IDLE)
    if lead in _MEANS and known.get(lead, 0.0) >= NOTABLE:
        yield NOTE, _MEANS[lead].format(share=percent(known[lead]))
        if lead == NEGOTIATION and row.ticked >= ENOUGH_TICKS * row.negotiations:
            yield (
                NOTE,
                (
                    f"rank {row.last_rank} is last in {row.last:,} of {row.ticked:,} negotiations, "
                    f"{number(row.late_ms)} ms after the median rank"
                ),
            )
        elif lead == NEGOTIATION:
            yield NOTE, "it does not show which rank: run again with HOROVOD_CACHE_CAPACITY=0"
    if shares.get(IDLE, 0.0) >= DOMINANT:
        yield NOTE, _MEANS[IDLE].format(share=percent(shares[IDLE]))


def late_ranks(results: ExperimentResults) -> list[Finding]:
    """Ranks that are late throughout a recording, by a part of a step that is worth a sentence."""
    late = [
        row
        for row in results.of(RankLateness)
        if row.latest and row.step_ms and row.late_median_ms >= LATE_SHARE * row.step_ms
    ]
    shown = list(dict.fromkeys(row.run_id for row in late))[:MAX_RUNS]
    findings = []
    for row in (row for row in late if row.run_id in shown):
        where = f" at {results.describe(row.point)}" if results.axes else ""
        group = f"group {row.group}" if row.group else "a group without a name"
        text = (
            f"rank {row.rank} is last in {percent(row.last_share)} of the collectives of {group} "
            f"in a trace{where}, {number(row.late_median_ms)} ms late (median)."
        )
        key = {"run_id": row.run_id, "group": row.group, "rank": row.rank}
        numbers = {"late_median_ms": row.late_median_ms, "last_share": row.last_share}
        findings.append(_finding(results, LATE, NOTE, text, RankLateness, key, numbers))
    return findings


def _finding(
    results: ExperimentResults,
    rule: str,
    level: str,
    text: str,
    table: type[TimelinePhase | RankLateness],
    key: Mapping[str, object],
    numbers: Mapping[str, float],
) -> Finding:
    """A sentence on a profiled run; of results of one source that are not measured it says so."""
    source = next(iter(results.sources), "measured") if len(results.sources) == 1 else "measured"
    evidence = {
        "experiment": results.name,
        "table": table.TABLE,
        "key": key,
        "numbers": dict(numbers),
    }
    return Finding(results.name, rule, level, marked(source, text), evidence)


RULES = (Rule(TIMELINE, timeline_signs), Rule(LATE, late_ranks))
