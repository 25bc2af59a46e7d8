"""Findings on causes: which ranks take longer for what in which steps, and what that costs.

What a step would be without a cause is a replay of the steps (``analysis.step_delays``).
"""

from collections.abc import Sequence
from itertools import groupby

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
from scalesweep.core.formatting import counted, number, with_interval
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import CLEAR, OPEN, Finding, declared_evidence, marked

RULE = "causes"
MOST = 4  # of a point
WORDS = {
    COMPUTE: "computation",
    INPUT: "input",
    CHECKPOINT: "checkpoints",
    VALIDATION: "validation",
    LOGGING: "logging",
    BETWEEN: "host time",
    INSIDE: "time inside steps in no span",
    TRANSFER: "the exchange",
}
CONTRADICTED = "the rate of samples and the step times contradict each other"
_MOST_RANKS = 4
_COLUMNS = ("ms", "ms_low", "ms_high", "gain_ms", "gain_ms_low", "gain_ms_high", "step_ms")


def step_causes(results: ExperimentResults) -> list[Finding]:
    """Of each point that has been looked at what costs 2 % of a step or more, the most first; and
    all of it together, if steps gain as much more without all of it than without each."""
    wrong = {_key(results, ledger.row) for ledger in ledgers(results) if ledger.contradicts}
    return [
        finding
        for key, rows in groupby(results.of(CauseRow), lambda row: _key(results, row.row))
        for finding in _of_point(results, list(rows), key in wrong)
    ]


def _key(results: ExperimentResults, row: dict[str, object]) -> Key:
    return (*results.key(row, results.axes), row["source"])


def _of_point(
    results: ExperimentResults, rows: Sequence[CauseRow], contradicted: bool
) -> list[Finding]:
    *causes, together = rows
    least = NOTABLE * together.step_ms
    notable = [row for row in causes if _costs(row) >= least][:MOST]
    said = [_finding(results, row, _sentence(results, row), contradicted) for row in notable]
    more = together.gain_ms.value - sum(row.gain_ms.value for row in causes)
    if len(notable) > 1 and more >= least:
        text = f"without these {len(notable)} causes together a step{_at(results, together)} is "
        text += f"{_interval(together)} shorter: they hide each other"
        said.append(_finding(results, together, text, contradicted))
    return said


def _costs(row: CauseRow) -> float:
    """Ms a step: what it gains, or what ranks take longer that others hide."""
    longer = row.ms.value if row.ms is not None and row.pattern == EVERY else 0.0
    return max(longer, row.gain_ms.value)


def _sentence(results: ExperimentResults, row: CauseRow) -> str:
    """``rank 1: computation +40.1 [39.6, 40.7] ms in every step; ...``: the interval decides."""
    assert row.ms is not None
    least = "at least " if row.inferred else ""
    gain, alone = f"{number(row.gain_ms.value)} ms", ""
    longer, steps = _interval(row), "every step"
    if row.pattern != EVERY:
        longer, gain = f"{number(row.ms.value)} ms", _interval(row)
        steps = f"{row.steps:,.0f} of {row.of_steps:,.0f} steps"
    elif row.gain_ms.value < NOTABLE * row.step_ms:
        gain, alone = "hardly", " alone"
    return (
        f"{_who(row)}: {WORDS[row.cause]} {least}+{longer} in {steps}{_at(results, row)}; "
        f"without it{alone} a step is {gain} shorter"
    )


def _interval(row: CauseRow) -> str:
    return with_interval(row.decides.value, row.decides.low, row.decides.high, "ms")


def _who(row: CauseRow) -> str:
    ranks = row.step_ranks.split(", ")
    if row.cause == TRANSFER:
        return "all ranks"
    if len(ranks) > _MOST_RANKS:
        return counted(len(ranks), "rank")
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(ranks)}"


def _at(results: ExperimentResults, row: CauseRow) -> str:
    return f" at {results.describe(row.row)}" if results.axes else ""


def _finding(results: ExperimentResults, row: CauseRow, text: str, contradicted: bool) -> Finding:
    reason = CONTRADICTED if contradicted else row.reason
    evidence = declared_evidence(results, row, _COLUMNS)
    evidence |= {"cause": row.cause, "pattern": row.pattern, "ranks": row.step_ranks}
    level = OPEN if reason else CLEAR
    said = marked(row.source, f"{text}.")
    return Finding(results.name, RULE, level, said, evidence, reason=reason)
