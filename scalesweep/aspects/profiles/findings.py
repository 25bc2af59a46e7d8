"""Findings on Horovod's timelines: the rules that its maintainers apply by hand.

Each rule names the sign, the cause, and the thread where it was explained. A rule whose sign the
timeline does not show says nothing. A profile is one run without an interval: every sentence is a
note, but for what Horovod itself warns of.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scalesweep.analysis.timeline_account import (
    COPIES,
    IDLE,
    NEGOTIATION,
    QUEUE,
    REDUCTION,
    WAIT,
)
from scalesweep.aspects.profiles.late_findings import late_ranks
from scalesweep.aspects.profiles.timeline import TimelinePhase
from scalesweep.core.formatting import counted, finite, number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, WARNING, Finding, Rule, marked

RULE = "timeline"
# A share of a step below this is not worth a sentence, and one that dominates begins here.
NOTABLE, DOMINANT = 0.1, 0.5
# Of the negotiations of a timeline: fewer with ticks than this are those of the start.
ENOUGH_TICKS = 0.5
MAX_RUNS = 3


@dataclass(frozen=True)
class Timeline:
    """What a timeline shows: shares of a step by phase (those that are known), and its row."""

    shares: Mapping[str, float]
    row: TimelinePhase

    def leads(self, phase: str, among: Sequence[str]) -> bool:
        """Whether a phase is notable and takes most of those ``among`` that are known."""
        own = self.shares.get(phase)
        others = [
            self.shares[phase_] for phase_ in among if phase_ in self.shares and phase_ != phase
        ]
        return own is not None and own >= NOTABLE and own >= max(others, default=0.0)


_HOROVOD = (NEGOTIATION, QUEUE, COPIES, REDUCTION)


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
        timeline = Timeline(
            {row.phase: row.share for row in rows if row.share is not None}, rows[0]
        )
        for rule in _RULES:
            if said := rule(timeline):
                findings.append(_finding(results, timeline, *said))
    return findings


def _finding(results: ExperimentResults, timeline: Timeline, level: str, text: str) -> Finding:
    where = f"{results.describe(timeline.row.point)}: " if results.axes else ""
    evidence = {
        "experiment": results.name,
        "table": TimelinePhase.TABLE,
        "key": {"run_id": timeline.row.run_id},
        "numbers": dict(timeline.shares),
    }
    source = next(iter(results.sources), "measured") if len(results.sources) == 1 else "measured"
    return Finding(
        results.name, RULE, level, marked(source, f"timeline of {where}{text}"), evidence
    )


_Said = tuple[str, str] | None


def _late_rank(timeline: Timeline) -> _Said:
    """Long negotiation: ranks are not in step (horovod#255, #2391)."""
    if not timeline.leads(NEGOTIATION, _HOROVOD):
        return None
    share = percent(timeline.shares[NEGOTIATION])
    text = f"negotiation takes {share} of a step: ranks are not in step, because one arrives late"
    row = timeline.row
    ticked, every = row.ticked, row.negotiations
    if every and ticked >= ENOUGH_TICKS * every and row.last_rank is not None:
        text += (
            f"; rank {row.last_rank} is last in {row.last:,} of {ticked:,} negotiations, "
            f"{number(row.late_ms)} ms after the median rank on average"
        )
    else:
        text += (
            f"; which one this timeline does not show ({ticked:,} of {every:,} negotiations say "
            "when each rank was ready): run again with HOROVOD_CACHE_CAPACITY=0"
        )
    return NOTE, f"{text}."


def _queue(timeline: Timeline) -> _Said:
    """The queue dominates: the call before is unfinished (horovod#2103, docs/timeline.rst)."""
    if not timeline.leads(QUEUE, _HOROVOD):
        return None
    share = percent(timeline.shares[QUEUE])
    return NOTE, (
        f"operations queue for {share} of a step behind the call before them: the network, or "
        "too many small calls; compare a larger HOROVOD_FUSION_THRESHOLD or HOROVOD_CYCLE_TIME."
    )


def _wait(timeline: Timeline) -> _Said:
    """Wait for data: the gradient is still being computed (docs/timeline.rst, horovod#449)."""
    if not timeline.leads(WAIT, _HOROVOD):
        return None
    share = percent(timeline.shares[WAIT])
    return NOTE, (
        f"operations wait for data for {share} of a step: the device still computes the "
        "gradient; this is not communication."
    )


def _gap(timeline: Timeline) -> _Said:
    """A gap between the last allreduce and the next step (horovod#1070)."""
    share = timeline.shares.get(IDLE, 0.0)
    if share < DOMINANT:
        return None
    return NOTE, (
        f"Horovod is idle for {percent(share)} of a step: input, the forward pass or too many "
        "threads take it, not communication."
    )


def _reduction(timeline: Timeline) -> _Said:
    """The reduction itself takes most of what Horovod does: bandwidth or latency of the network."""
    if not timeline.leads(REDUCTION, (*_HOROVOD, WAIT)):
        return None
    share = percent(timeline.shares[REDUCTION])
    return NOTE, f"the reduction itself takes {share} of a step, more than waiting for any rank."


def _evictions(timeline: Timeline) -> _Said:
    """Responses evicted from the cache: more tensors than it holds (horovod#2626, #1189)."""
    count = timeline.row.evictions
    if not count:
        return None
    return WARNING, (
        f"Horovod evicted responses from its cache ({counted(count, 'warning')}): more "
        "tensors than HOROVOD_CACHE_CAPACITY; raise it."
    )


def _stalls(timeline: Timeline) -> _Said:
    """Ranks were missing for 60 s: they have different numbers of batches (horovod#2420)."""
    count = timeline.row.stalls
    if not count:
        return None
    return WARNING, (
        f"Horovod waited long for missing ranks ({counted(count, 'warning')}): they may have "
        "different numbers of batches."
    )


_RULES: tuple[Callable[[Timeline], _Said], ...] = (
    _stalls, _evictions, _late_rank, _queue, _wait, _reduction, _gap,
)  # fmt: skip

RULES = (Rule(timeline_signs), Rule(late_ranks))
