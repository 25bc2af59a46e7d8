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
from scalesweep.core.formatting import counted, finite, number, percent
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import NOTE, WARNING, Finding, marked

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
    row: Row

    def leads(self, phase: str, among: Sequence[str]) -> bool:
        """Whether a phase is notable and takes most of those ``among`` that are known."""
        own = self.shares.get(phase)
        others = [self.shares[one] for one in among if one in self.shares and one != phase]
        return own is not None and own >= NOTABLE and own >= max(others, default=0.0)


_HOROVOD = (NEGOTIATION, QUEUE, COPIES, REDUCTION)


def timeline_signs(study: ExperimentResults) -> list[Finding]:
    """What the timelines of an experiment show, at the largest scale first."""
    runs: dict[str, list[Row]] = {}
    for row in study.rows("timeline"):
        runs.setdefault(str(row["run_id"]), []).append(row)

    def scale(rows: Sequence[Row]) -> float:
        value = rows[0].get(study.scale)
        return float(value) if finite(value) else 0.0

    found = []
    for rows in sorted(runs.values(), key=scale, reverse=True)[:MAX_RUNS]:
        one = Timeline(
            {str(row["phase"]): row["share"] for row in rows if finite(row["share"])}, rows[0]
        )
        for rule in _RULES:
            if said := rule(one):
                found.append(_finding(study, one, *said))
    return found


def _finding(study: ExperimentResults, one: Timeline, level: str, text: str) -> Finding:
    where = f"{study.describe(one.row)}: " if study.axes else ""
    evidence = {
        "experiment": study.name,
        "table": "timeline",
        "key": {"run_id": one.row["run_id"]},
        "numbers": dict(one.shares),
    }
    source = next(iter(study.sources), "measured") if len(study.sources) == 1 else "measured"
    return Finding(study.name, RULE, level, marked(source, f"timeline of {where}{text}"), evidence)


_Said = tuple[str, str] | None


def _late_rank(one: Timeline) -> _Said:
    """Long negotiation: ranks are not in step (horovod#255, #2391)."""
    if not one.leads(NEGOTIATION, _HOROVOD):
        return None
    share = percent(one.shares[NEGOTIATION])
    text = f"negotiation takes {share} of a step: ranks are not in step, because one arrives late"
    row = one.row
    ticked, every = row.get("ticked") or 0, row.get("negotiations") or 0
    if every and ticked >= ENOUGH_TICKS * every and finite(row.get("last_rank")):
        text += (
            f"; rank {row['last_rank']} is last in {row['last']:,} of {ticked:,} negotiations, "
            f"{number(row.get('late_ms'))} ms after the median rank on average"
        )
    else:
        text += (
            f"; which one this timeline does not show ({ticked:,} of {every:,} negotiations say "
            "when each rank was ready): run again with HOROVOD_CACHE_CAPACITY=0"
        )
    return NOTE, f"{text}."


def _queue(one: Timeline) -> _Said:
    """The queue dominates: the call before is unfinished (horovod#2103, docs/timeline.rst)."""
    if not one.leads(QUEUE, _HOROVOD):
        return None
    share = percent(one.shares[QUEUE])
    return NOTE, (
        f"operations queue for {share} of a step behind the call before them: the network, or "
        "too many small calls; compare a larger HOROVOD_FUSION_THRESHOLD or HOROVOD_CYCLE_TIME."
    )


def _wait(one: Timeline) -> _Said:
    """Wait for data: the gradient is still being computed (docs/timeline.rst, horovod#449)."""
    if not one.leads(WAIT, _HOROVOD):
        return None
    share = percent(one.shares[WAIT])
    return NOTE, (
        f"operations wait for data for {share} of a step: the device still computes the "
        "gradient; this is not communication."
    )


def _gap(one: Timeline) -> _Said:
    """A gap between the last allreduce and the next step (horovod#1070)."""
    share = one.shares.get(IDLE, 0.0)
    if share < DOMINANT:
        return None
    return NOTE, (
        f"Horovod is idle for {percent(share)} of a step: input, the forward pass or too many "
        "threads take it, not communication."
    )


def _reduction(one: Timeline) -> _Said:
    """The reduction itself takes most of what Horovod does: bandwidth or latency of the network."""
    if not one.leads(REDUCTION, (*_HOROVOD, WAIT)):
        return None
    share = percent(one.shares[REDUCTION])
    return NOTE, f"the reduction itself takes {share} of a step, more than waiting for any rank."


def _evictions(one: Timeline) -> _Said:
    """Responses evicted from the cache: more tensors than it holds (horovod#2626, #1189)."""
    count = one.row.get("evictions")
    if not finite(count) or count <= 0:
        return None
    return WARNING, (
        f"Horovod evicted responses from its cache ({counted(int(count), 'warning')}): more "
        "tensors than HOROVOD_CACHE_CAPACITY; raise it."
    )


def _stalls(one: Timeline) -> _Said:
    """Ranks were missing for 60 s: they have different numbers of batches (horovod#2420)."""
    count = one.row.get("stalls")
    if not finite(count) or count <= 0:
        return None
    return WARNING, (
        f"Horovod waited long for missing ranks ({counted(int(count), 'warning')}): they may have "
        "different numbers of batches."
    )


_RULES: tuple[Callable[[Timeline], _Said], ...] = (
    _stalls, _evictions, _late_rank, _queue, _wait, _reduction, _gap,
)  # fmt: skip
