"""Findings on causes: which ranks take longer for what in which steps, and what that costs.

What a step would be without a cause is a replay of the steps (``analysis.step_delays``).
"""

from dataclasses import replace
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
from scalesweep.aspects.breakdown.ledgers import ledgers
from scalesweep.aspects.steps.causes import NOTABLE
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
    number_of,
    point_key,
)
from scalesweep.table.declared import Estimate

CAUSES, HIDDEN = "causes", "hidden causes"
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
    wrong = {point_key(results, ledger.row) for ledger in ledgers(results) if ledger.contradicts}
    findings = []
    for key, group in groupby(results.of(CauseRow), lambda row: point_key(results, row.row)):
        *causes, together = group
        said = [_cause(results, row) for row in causes[:MOST]]
        more = together.gain_ms.value - sum(row.gain_ms.value for row in causes)
        if len(said) > 1 and more >= NOTABLE * together.step_ms:
            words = {"count": str(len(said))}
            said.append(_of_row(results, HIDDEN, together, words, (_decisive("gain", together),)))
        for finding in said:
            reason = CONTRADICTED if key in wrong else finding.reason
            findings.append(_stated(finding, reason))
    return findings


def _cause(results: ExperimentResults, row: CauseRow) -> Finding:
    ranks = row.step_ranks.split(", ")
    who = "all ranks" if row.cause == TRANSFER else (
        counted(len(ranks), "rank") if len(ranks) > _MOST_RANKS
        else f"rank{'s' * (len(ranks) > 1)} {row.step_ranks}"
    )  # fmt: skip
    what, then = WORDS[row.cause]
    every = row.pattern == EVERY
    where = "every step" if every else f"{row.steps:,.0f} of {row.of_steps:,.0f} steps"
    words = {
        "who": who, "what": what, "where": where, "then": then.format(who=who),
        "least": "at least " if row.inferred else "",
    }  # fmt: skip
    assert row.ms is not None
    ms = _decisive("ms", row) if every else _plain("ms", row.ms)
    gain = _plain("gain", row.gain_ms) if every else _decisive("gain", row)
    finding = _of_row(results, CAUSES, row, words, (ms, gain))
    finding.evidence.update({"cause": row.cause, "pattern": row.pattern, "ranks": row.step_ranks})
    return finding


def _plain(name: str, estimate: Estimate) -> Number:
    """A number without its interval, in three digits."""
    return number_of(name, float(f"{round(estimate.value, 3):.3g}"), "ms")


def _decisive(name: str, row: CauseRow) -> Number:
    """The number that is tested, with the interval that decides."""
    return number_of(name, row.decides.value, "ms", row.decides.low, row.decides.high)


def _of_row(
    results: ExperimentResults, rule: str, row: CauseRow, words: dict[str, str],
    numbers: tuple[Number, ...],
) -> Finding:  # fmt: skip
    subject = results.describe(row.row) if results.axes else ""
    return Finding(
        results.name, rule, CLEAR, subject=subject, words=words, numbers=numbers,
        evidence=declared_evidence(results, row), reason=row.reason,
    )  # fmt: skip


def _stated(finding: Finding, reason: str) -> Finding:
    return replace(finding, state=OPEN if reason else CLEAR, reason=reason)


_OPEN = "repeat the runs"
RULES = (
    Rule(
        CAUSES, step_causes, part=STEP, figures=("steps",),
        says={
            CLEAR: "{subject}: {who}: {what} {least}+{ms} in {where}; without it a step is {gain} "
            "shorter."
        },
        next={CLEAR: "{then}", OPEN: _OPEN},
    ),
    Rule(
        HIDDEN, None, part=STEP, figures=("steps",),
        says={
            CLEAR: "{subject}: {count} causes hide each other; without all of them a step is "
            "{gain} shorter."
        },
        next={CLEAR: "remove all of them: one alone gains less", OPEN: _OPEN},
    ),
)  # fmt: skip
