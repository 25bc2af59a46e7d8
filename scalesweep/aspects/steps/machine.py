"""Findings on steps against the machine: computation, exchange and input at the largest scale.

Nothing where a probe is missing, or where a term is too small a part of the step to matter.
"""

from collections.abc import Iterator

from scalesweep.analysis.stats import share_p
from scalesweep.analysis.step_account import STEP_WORDS
from scalesweep.aspects.steps.breakdown import EfficiencyRow, ExchangeRow
from scalesweep.aspects.steps.causes import NOTABLE
from scalesweep.aspects.steps.efficiency import MACHINE
from scalesweep.aspects.steps.ledgers import Ledger, ledgers
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.table.declared import Estimate

RULE = "against machine"
ENOUGH = 0.9  # what reaches as much of what the machine could do is as good as all of it
MOST_OF_IT = 0.5  # a cause explains what is lost if it makes up this share of it
# By term: what it is called, what it is held against, and what to do.
WORDS = {
    "compute": ("computation", "its layers", "look at the table of layers, or at threads and data "
                "layout"),
    "input": ("input", "its files", "read ahead, with more workers or cores for each rank"),
    "transfer": ("the exchange", "one message", ""),
}  # fmt: skip


def against_machine(results: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, what its step reaches of what the machine could do."""
    last: dict[Key, Ledger] = {}
    for ledger in ledgers(results):
        last[(*results.key(ledger.row, results.series_names), ledger.row["source"])] = ledger
    at = {results.point_key(ledger.row): ledger for ledger in last.values()}
    rows: list[EfficiencyRow | ExchangeRow] = [
        *results.of(EfficiencyRow), *results.of(ExchangeRow),
    ]  # fmt: skip
    return [
        finding
        for row in rows
        if (own := at.get(results.point_key(row.row))) is not None
        for finding in _reached(results, own, row)
    ]


def _reached(
    results: ExperimentResults, ledger: Ledger, row: EfficiencyRow | ExchangeRow
) -> Iterator[Finding]:
    """What computation and input reach, and the exchange, against one message of its size."""
    if isinstance(row, ExchangeRow):
        share, own, term, cause = row.of_network, row.transfer_ms.value, "transfer", _cause(row)
    elif row.kind == MACHINE and row.machine is not None and row.term != "transfer":
        share, own, term, cause = row.value, row.machine.value / row.value.value, row.term, None
    else:
        return
    if own < NOTABLE * ledger.elapsed.ms or (share.value >= ENOUGH and term != "compute"):
        return
    yield _finding(results, ledger, row, share, own, term, cause)


def _cause(sent: ExchangeRow) -> tuple[str, str]:
    """Why a step's exchange takes longer than one message would, if that is known, and what to
    do."""
    lost = sent.transfer_ms.value - sent.one_ms.value
    if sent.messages > 1 and sent.fused_ms.value - sent.one_ms.value >= MOST_OF_IT * lost:
        least = -(-int(sent.message_bytes) // (1 << 20))
        return "; messages are too small", f"let tensors be sent together up to {least} MiB or more"
    # A tensor waits for the next cycle, and its reduction is negotiated in it.
    if sent.cycle_ms and MOST_OF_IT * lost <= sent.cycle_ms <= lost / MOST_OF_IT:
        return "; tensors wait for the cycle", "compare a shorter cycle of the exchange"
    return "", ""


def _finding(
    results: ExperimentResults, ledger: Ledger, row: EfficiencyRow | ExchangeRow, share: Estimate,
    own: float, term: str, cause: tuple[str, str] | None,
) -> Finding:  # fmt: skip
    """It is clear that less than all is reached if the interval lies below; a cause is named of
    what is clear."""
    what, of, then = WORDS[term]
    state, reason = CLEAR, ""
    if share.low is None or share.high is None:
        state, reason = OPEN, "without repeats of the runs and the probe it has no interval"
    elif share.low > 1 and term == "compute":
        state = NOTE
    elif share.high >= 1:
        state, reason = OPEN, "its interval includes all of it"
    why, then = ("", "") if state == OPEN else cause or ("", then)
    p = share_p(share.value, share.low, share.high, ledger.row.get("repeats"), 1.0)
    return Finding(
        results.name, RULE, state, subject=f"At {results.describe(row.row)}:" * bool(results.axes),
        words={"what": what, "of": of, "cause": why, "step": STEP_WORDS[ledger.form]},
        numbers=(
            estimate_of("share", share, "1"), number_of("own", own, "ms"),
            number_of("least", own * share.value, "ms"),
        ),
        next="" if state == NOTE else then, reason=reason,
        claims=() if state == NOTE else (claim_of(p, RULE, term, *results.point_key(row.row)),),
        evidence=declared_evidence(results, row) | {"term": term},
    )  # fmt: skip


RULES = (
    Rule(
        RULE, against_machine, figures=("ledger",),
        says={
            CLEAR: "{subject} {what} reaches {share:%} of what {of} could: {own} a {step}, {least} "
            "would do{cause}.",
            NOTE: "{subject} {what} is faster than the measured ceilings allow: {share:%}.",
        },
        next={NOTE: "measure the ceilings with arrays as large as the program's"},
    ),
)  # fmt: skip
