"""Findings on ranks: which are slower than the others, and hosts that are."""

from scalesweep.analysis.rank_stats import (
    ALONE,
    EPOCH,
    INPUT,
    NOTABLE,
    STEP,
    STEP_INPUT,
    STEP_WORK,
    WORK,
)
from scalesweep.aspects.steps.ranks import StragglerRow
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Rule,
    declared_evidence,
    estimate_of,
)

RULE = "stragglers"
MAX_SENTENCES = 6
# What takes its time.
WORDS = {
    WORK: "own work in an epoch",
    INPUT: "wait for input in an epoch",
    STEP_WORK: "own work in a step",
    STEP_INPUT: "wait for input in a step",
    STEP: "step",
    EPOCH: "epoch",
}


def slow_ranks(results: ExperimentResults) -> list[Finding]:
    """Ranks and hosts that are slower than the others, each at the point where it is slowest; else
    that none is. Ranks that causes name are not named again."""
    causes = results.of(CauseRow)
    looked_at = {results.point_key(row.row) for row in causes}
    late = {rank for row in causes for rank in row.step_ranks.split(", ") if rank}
    rows = [
        row for row in results.of(StragglerRow)
        # Whose step is long may be who waits in it; causes say whom for.
        if not (row.time == STEP and results.point_key(row.row) in looked_at)
    ]  # fmt: skip
    named = [row for row in rows if row.named and row.step_ranks not in late]
    named.sort(key=lambda row: (not row.clear, -row.excess))
    slow = {(row.time, row.rank, row.host): row for row in reversed(named)}
    if slow:
        return [_finding(results, row) for row in reversed(slow.values())][:MAX_SENTENCES]
    least = [row for row in rows if not row.named and row.of > 2]
    return [_finding(results, row) for row in least[:1] if not late]


def _finding(results: ExperimentResults, row: StragglerRow) -> Finding:
    who = f"host {row.host}" if row.rank is None else f"rank {row.rank}"
    who += f" on {row.host}" if row.host and row.rank is not None else ""
    units = "hosts" if row.rank is None else "ranks"
    words = {
        "who": who,
        "what": WORDS[row.time] if row.rank is not None else f"ranks' {WORDS[row.time]}",
        "others": f"the median of {row.of:,} {units}" if row.of > 2 else "the other's",
    }
    state = (CLEAR if row.clear else OPEN) if row.named else NOTE
    reason = row.reason
    if state == NOTE and row.ratio.value > 1 + NOTABLE and row.time not in ALONE:
        reason = "steps that wait for all ranks do not show which one is late"
    evidence = declared_evidence(results, row) | {"figure": f"ranks-{row.time}"}
    evidence["key"] |= {"time": row.time, "rank": row.rank, "host": row.host}
    return Finding(
        results.name, RULE, state, subject=results.describe(row.row) if results.axes else "",
        words=words, numbers=(estimate_of("ratio", row.ratio, "1"),), evidence=evidence,
        reason=reason,
    )  # fmt: skip


RULES = (
    Rule(
        RULE, slow_ranks,
        says={
            CLEAR: "{subject}: {who} is slow: its {what} takes {ratio:x} {others}.",
            NOTE: "{subject}: no rank is slow; the slowest one's {what} takes {ratio:x} {others}.",
        },
        next={
            CLEAR: "check {who}: clock, memory, other processes",
            OPEN: "repeat the runs, and stamp the program's steps: stamps show who is late",
        },
    ),
)  # fmt: skip
