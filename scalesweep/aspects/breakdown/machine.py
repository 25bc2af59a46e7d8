"""Findings on steps against the machine: computation, exchange and input at the largest scale.

Nothing where a probe is missing, or where a term is too small a part of the step to matter.
"""

from collections.abc import Iterator

from scalesweep.analysis.stats import share_p
from scalesweep.analysis.step_account import STEP_WORDS
from scalesweep.aspects.breakdown.efficiency import MACHINE
from scalesweep.aspects.breakdown.ledgers import Ledger, ledgers
from scalesweep.aspects.breakdown.table import EfficiencyRow, ExchangeRow
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Number,
    Rule,
    claim_of,
    declared_evidence,
    estimate_of,
    number_of,
    point_key,
)
from scalesweep.table.declared import Estimate

COMPUTATION, EXCHANGE, READING = "against layers", "against network", "against files"
FAST = "faster than the ceilings"
NOTABLE = 0.02  # a term below this share of the step is no reason to act
ENOUGH = 0.9  # what reaches as much of what the machine could do is as good as all of it
MOST_OF_IT = 0.5  # a cause explains what is lost if it makes up this share of it


def against_machine(results: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, what its step reaches of what the machine could do."""
    last: dict[Key, Ledger] = {}
    for ledger in ledgers(results):
        last[(*results.key(ledger.row, results.series_names), ledger.row["source"])] = ledger
    at = {point_key(results, ledger.row): ledger for ledger in last.values()}
    findings: list[Finding] = []
    for row in results.of(EfficiencyRow) if at else ():
        own = at.get(point_key(results, row.row))
        if own and row.kind == MACHINE and row.machine is not None:
            findings += _of_term(results, own, row)
    for sent in results.of(ExchangeRow) if at else ():
        if own := at.get(point_key(results, sent.row)):
            findings += _exchange(results, own, sent)
    return findings


def _of_term(results: ExperimentResults, ledger: Ledger, row: EfficiencyRow) -> Iterator[Finding]:
    """Computation against its layers' least time, or input against the files'."""
    assert row.machine is not None
    share, least = row.value, row.machine.value
    own = least / share.value
    if own < NOTABLE * ledger.elapsed.value:
        return
    numbers = (number_of("own", own, "ms"), number_of("least", least, "ms"))
    if row.term == "compute":
        fast = share.low is not None and share.low > 1
        stated = (estimate_of("share", share, "1"), *numbers)
        yield _finding(results, ledger, FAST if fast else COMPUTATION, row, share, stated)
    elif row.term == "input" and share.value < ENOUGH:
        low, high = (1 / end if end else None for end in (share.high, share.low))
        stated = (number_of("times", 1 / share.value, "1", low, high), *numbers)
        yield _finding(results, ledger, READING, row, share, stated)


def _exchange(results: ExperimentResults, ledger: Ledger, sent: ExchangeRow) -> Iterator[Finding]:
    """The exchange against one message of its size."""
    share = sent.of_network
    if sent.transfer_ms.value < NOTABLE * ledger.elapsed.value or share.value >= ENOUGH:
        return
    cause, advice = _cause(sent)
    numbers = (
        number_of("rate", sent.rate.value, "bytes/s"),
        estimate_of("share", share, "1"),
        number_of("size", float(sent.message_bytes), "bytes"),
    )
    yield _finding(results, ledger, EXCHANGE, sent, share, numbers, cause, advice)


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
    results: ExperimentResults,
    ledger: Ledger,
    rule: str,
    row: EfficiencyRow | ExchangeRow,
    share: Estimate,
    numbers: tuple[Number, ...],
    cause: str = "",
    advice: str = "",
) -> Finding:
    """It is clear that less than all is reached if the interval lies below; a cause is named of
    what is clear."""
    state, reason = CLEAR, ""
    if share.low is None or share.high is None:
        state, reason = OPEN, "without repeats of the runs and the probe it has no interval"
    elif share.high >= 1:
        state, reason = OPEN, "its interval includes all of it"
    p = share_p(share.value, share.low, share.high, ledger.row.get("repeats"), 1.0)
    step = STEP_WORDS[ledger.form]
    return Finding(
        results.name, rule, NOTE if rule == FAST else state,
        subject=f"At {results.describe(row.row)}:" if results.axes else "",
        words={"cause": cause if state == CLEAR else "", "step": step},
        numbers=numbers, next=advice if state == CLEAR else "", reason=reason,
        claims=() if rule == FAST else (claim_of(p, rule, *point_key(results, row.row)),),
        evidence=declared_evidence(results, row),
    )  # fmt: skip


_FIGURES = ("ledger",)
RULES = (
    Rule(
        COMPUTATION, against_machine, figures=_FIGURES,
        says={CLEAR: "{subject} computation reaches {share:%} of what its layers could: {own} a "
              "{step}, {least} would do."},
        next={CLEAR: "look at the table of layers, or at threads and data layout"},
    ),
    Rule(
        FAST, None, figures=_FIGURES,
        says={NOTE: "{subject} computation is faster than the measured ceilings allow: {share:%}."},
        next={NOTE: "measure the ceilings with arrays as large as the program's"},
    ),
    Rule(
        EXCHANGE, None, figures=_FIGURES,
        says={CLEAR: "{subject} the exchange moves {rate}, {share:%} of what one message of {size} "
              "would{cause}."},
    ),
    Rule(
        READING, None, figures=_FIGURES,
        says={CLEAR: "{subject} input takes {times:x} what the files need: {own} a {step}, {least} "
              "would do."},
        next={CLEAR: "read ahead, with more workers or cores for each rank"},
    ),
)  # fmt: skip
