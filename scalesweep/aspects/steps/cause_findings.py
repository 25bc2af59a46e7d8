"""Findings on causes: which ranks take longer for what in which steps, and what that costs.

What a step would be without a cause is a replay of the steps (``analysis.step_delays``).
"""

from itertools import groupby

from scalesweep.analysis.multiple import STEP
from scalesweep.analysis.step_delays import EVERY
from scalesweep.analysis.step_work import (
    BETWEEN,
    CHECKPOINT,
    COMPUTE,
    INPUT,
    INSIDE,
    LOGGING,
    TRANSFER,
    VALIDATION,
)
from scalesweep.aspects.steps.causes import NOTABLE
from scalesweep.aspects.steps.ledgers import ledgers
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.core.formatting import counted
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    OPEN,
    Finding,
    Number,
    Rule,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.table.declared import Estimate

RULE = "causes"
MOST = 4  # causes of a point
# What a cause is called, and what to do about it.
WORDS = {
    COMPUTE: ("computation", "look at {who}: clock, data, other processes"),
    INPUT: ("input", "give {who} more readers, or its files a faster place"),
    CHECKPOINT: ("checkpoints", "write checkpoints less often, or beside the training"),
    VALIDATION: ("validation", "validate less often, or on all ranks"),
    LOGGING: ("logging", "log less often"),
    BETWEEN: ("host time", "profile what {who} does between steps"),
    INSIDE: ("time in no span", "stamp the whole step"),
    TRANSFER: ("the exchange", "look at the network: links, other jobs, message sizes"),
}
CONTRADICTED = "the rate of samples and the step times contradict each other"
_MOST_RANKS = 4


def step_causes(results: ExperimentResults) -> list[Finding]:
    """The causes of each point that has been looked at, the largest gain first; and all of them
    together, if steps gain 2 % more without all than without each."""
    wrong = {results.point_key(ledger.row) for ledger in ledgers(results) if ledger.contradicts}
    findings = []
    for key, group in groupby(results.of(CauseRow), lambda row: results.point_key(row.row)):
        *causes, together = group
        doubt = CONTRADICTED if key in wrong else ""
        findings += [_cause(results, row, doubt) for row in causes[:MOST]]
        more = together.gain_ms.value - sum(row.gain_ms.value for row in causes)
        if len(causes) > 1 and more >= NOTABLE * together.step_ms:
            words = {"what": f"{len(causes[:MOST])} causes hide each other", "it": "all of them",
                     "then": "remove all of them: one alone gains less"}  # fmt: skip
            gain = estimate_of("gain", together.decides, "ms")
            findings.append(_finding(results, together, words, (gain,), doubt))
    return findings


def _cause(results: ExperimentResults, row: CauseRow, doubt: str) -> Finding:
    """The number that is tested has the interval that decides, the other one three digits."""
    ranks, every = row.step_ranks.split(", "), row.pattern == EVERY
    who = f"rank{'s' * (len(ranks) > 1)} {row.step_ranks}"
    if row.cause == TRANSFER or len(ranks) > _MOST_RANKS:
        who = "all ranks" if row.cause == TRANSFER else counted(len(ranks), "rank")
    what, then = WORDS[row.cause]
    decides = estimate_of("gain", row.decides, "ms")
    assert row.ms is not None
    ms, gain = (decides, _plain(row.gain_ms)) if every else (_plain(row.ms), decides)
    where = "every step" if every else f"{row.steps:,.0f} of {row.of_steps:,.0f} steps"
    least = "at least " if row.inferred else ""
    words = {"what": f"{who}: {what} {least}+{ms} in {where}", "it": "it",
             "then": then.format(who=who)}  # fmt: skip
    finding = _finding(
        results, row, words, (number_of("ms", ms.value, "ms", ms.low, ms.high), gain), doubt
    )
    finding.evidence.update({"cause": row.cause, "pattern": row.pattern, "ranks": row.step_ranks})
    return finding


def _plain(estimate: Estimate) -> Number:
    return number_of("gain", float(f"{round(estimate.value, 3):.3g}"), "ms")


def _finding(
    results: ExperimentResults, row: CauseRow, words: dict[str, str], numbers: tuple[Number, ...],
    doubt: str,
) -> Finding:  # fmt: skip
    reason, subject = doubt or row.reason, results.describe(row.row) if results.axes else ""
    return Finding(
        results.name, RULE, OPEN if reason else CLEAR, numbers=numbers, reason=reason,
        subject=subject, words={**words, "at": f"At {subject}, " if subject else ""},
        evidence=declared_evidence(results, row),
    )  # fmt: skip


RULES = (
    Rule(
        RULE, step_causes, part=STEP,
        says={CLEAR: "{at}{what}; without {it} a step is {gain} shorter."},
        next={CLEAR: "{then}", OPEN: "repeat the runs"},
    ),
)  # fmt: skip
