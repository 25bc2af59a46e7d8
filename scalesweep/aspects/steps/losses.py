"""Findings on the ledger: what keeps the largest scale of a series from the ideal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scalesweep.analysis.multiple import STEP
from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.analysis.step_account import EPOCHS, NOEXCHANGE, REST, STEP_WORDS
from scalesweep.aspects.steps.breakdown import EfficiencyRow, FirstEpochRow, LedgerRow
from scalesweep.aspects.steps.causes import NOTABLE
from scalesweep.aspects.steps.efficiency import IMBALANCE, LABELS, OUTSIDE, SLOWER
from scalesweep.aspects.steps.ledgers import Ledger, largest_points, ledgers
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    ATTENTION,
    CLEAR,
    NOTE,
    OPEN,
    SILENT,
    Claim,
    Finding,
    Number,
    Rule,
    claim_of,
    declared_evidence,
    number_of,
)
from scalesweep.table.declared import Estimate

RULE = "largest loss"
# What to do about a loss, by its term; what else the step is made of is no loss.
DO = {
    "local_batch": "give each rank a larger batch: a small one computes slowly",
    SLOWER: "compare fewer threads per rank: ranks share cores, memory or disks",
    "input": "compare more parallel reads, more prefetching or a cache",
    "checkpoint": "write checkpoints less often, or beside the steps",
    "validation": "validate less often, or on fewer samples",
    "logging": "log less often, and on no rank alone",
    "between": "look at what the program does between its steps: callbacks, logging, copies",
    "persistent": "look at the slow rank and its host: it is late in every step",
    IMBALANCE: "look at the ranks' times: one may have slower files",
    "stalls": "look at the steps that stall: checkpoints, garbage collection, file systems",
    "alternating": "look for jitter: other work on the nodes, threads that share cores",
    "transfer": "profile the exchange (docs/guide/profiles.md)",
    "sharded": "compare `reshard_after_forward: false`, or shards within a node",
    "tensor": "keep `tp` within a node, or compare a smaller one",
    "pipeline": "compare more micro-batches, or an interleaved schedule",
    "communication": "record time stamps of each step: they tell waiting from transfer",
    "barrier": "run longer epochs, or look at what ranks do at their ends",
    OUTSIDE: "record what lies between steps (docs/guide/time_breakdown.md)",
}
# Why steps are shorter, or longer, than the rate of samples says.
CONTRADICTS = (
    "most of the time is outside of the timed steps, or the two are of different samples",
    "a clock or a unit is wrong, or the two are of different samples",
)
# Of what the ranks in the middle do by themselves, and the terms that are measured from there.
_MIDDLE = ("local_batch", SLOWER, "input", "between")
_IMBALANCE = ("persistent", "alternating")
# Single delays may pass if ranks wait for each other within a step.
_PASSING, _WITHIN = ("stalls", "alternating"), frozenset({"sharded", "tensor", "pipeline"})


def largest_loss(results: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, the largest loss against the ideal step; of programs
    that only read, that of the first epoch too.

    Nothing if the step is less than 2 % longer than the ideal; a note if more of it is unattributed
    than any term explains. What is claimed is that the term takes longer than at the reference, of
    every term; that it is the largest is told by its size.
    """
    largest = [
        ledger
        for table in (EfficiencyRow, FirstEpochRow)
        for ledger in largest_points(results, ledgers(results, table))
    ]
    every = tuple(
        _claim(results, term)
        for ledger in largest
        for name, term in ledger.parts.items()
        if name in DO and term.loss is not None
    )
    tested = [Finding(results.name, RULE, SILENT, claims=every)] if every else []
    said = [_finding(results, ledger) for ledger in largest]
    return [*filter(None, said), *tested]


def _finding(results: ExperimentResults, ledger: Ledger) -> Finding | None:
    """The sentence on the largest loss of a point; None if there is none to speak of."""
    assert ledger.ideal is not None
    whole, ideal = ledger.elapsed, ledger.ideal.ms
    parts = netted(ledger)
    losses = {name: term.more for name, term in parts.items() if name in DO and term.more}
    if not losses or (whole.more or 0.0) < NOTABLE * ideal:
        return None
    name = max(losses, key=lambda term: losses[term])
    if (unnamed := _unnamed(results, ledger, losses[name])) is not None:
        return unnamed
    doubt = _doubt(ledger, parts[name])
    reached = min(1.0, ideal / (whole.ms - losses[name]))
    numbers = _ms("loss", parts[name].loss, whole), number_of("reached", reached, "1")
    made = _of_term(results, ledger, OPEN if doubt else CLEAR, parts[name], numbers)
    words = {**made.words, "share": f"{100 * reached:.0f} %"}
    if name == SLOWER and ledger.form in (EPOCHS, NOEXCHANGE) and "input" not in ledger.parts:
        words["name"] = "slower input and computation"
    return replace(made, reason=doubt, words=words, next=DO[name])


def _ms(name: str, estimate: Estimate | None, whole: LedgerRow) -> Number:
    """A time in ms, of steps from 5 s on in s."""
    assert estimate is not None
    factor, unit = (1.0, "ms") if whole.ms < 5e3 else (1e-3, "s")
    shown = estimate.times(factor)
    return number_of(name, shown.value, unit, shown.low, shown.high)


def _doubt(ledger: Ledger, largest: LedgerRow) -> str:
    """Why a loss is open; empty if it is not."""
    if largest.claimed >= SIGNIFICANT:
        return "the repeats leave it open"
    if largest.term in _PASSING and not _WITHIN.isdisjoint(ledger.parts):
        return "ranks wait for each other within a step"
    return ""


def netted(ledger: Ledger) -> Mapping[str, LedgerRow]:
    """The terms, those of imbalance against the reference too: a rank is behind the ones in the
    middle by what these are faster than at the reference, and no step is longer for that."""
    parts = dict(ledger.parts)
    left = -sum(parts[name].more or 0.0 for name in _MIDDLE if name in parts)
    for name in _IMBALANCE:
        loss = parts[name].loss if name in parts else None
        if loss is not None and (less := min(left, loss.value)) > 0:
            ends = (None if end is None else end - less for end in (loss.low, loss.high))
            parts[name] = replace(parts[name], loss=Estimate(loss.value - less, *ends))
            left -= less
    return parts


def main_loss(series: Sequence[Ledger]) -> str:
    """The largest loss at the largest scale of a series: ``load imbalance 39 %`` (of its step);
    empty if nothing is known or lost there."""
    if not series or series[-1].ideal is None:
        return ""
    whole = series[-1].elapsed.ms
    losses = {name: term.more or 0.0 for name, term in netted(series[-1]).items()}
    term = max(losses, key=lambda name: losses[name], default="")
    share = losses[term] / whole if term else 0.0
    return f"{LABELS[term].lower()} {100 * share:.0f} %" if share >= NOTABLE else ""


def _unnamed(results: ExperimentResults, ledger: Ledger, largest: float) -> Finding | None:
    """The sentence if no term can be named; None if one can."""
    whole, rest = ledger.elapsed, ledger.parts[REST]
    if ledger.contradicts:
        own = Estimate(whole.ms - ledger.parts[OUTSIDE].ms)
        numbers = _ms("by rate", Estimate(whole.ms), whole), _ms("own", own, whole)
        made = _of_term(results, ledger, ATTENTION, ledger.parts[OUTSIDE], numbers)
        return replace(made, reason=CONTRADICTS[own.value > whole.ms])
    if largest <= abs(rest.more or 0.0):
        made = _of_term(results, ledger, NOTE, rest, (_ms("loss", rest.loss, whole),))
        then = "run more and longer steps, or profile one run"
        return replace(made, reason="more than any term explains", next=then)
    # Terms that the reference may have too, without their name.
    nameless = [
        term for name, term in ledger.parts.items()
        if name in DO and term.loss is None and max(term.ms, term.value.high or 0.0) > largest
    ]  # fmt: skip
    if not nameless:
        return None
    term = max(nameless, key=lambda term: term.ms)
    made = _of_term(results, ledger, NOTE, term, (_ms("loss", Estimate(term.ms), whole),))
    return replace(made, reason="the reference, which does not print it, may have the same")


def _of_term(
    results: ExperimentResults, ledger: Ledger, state: str, term: LedgerRow,
    numbers: tuple[Number, ...],
) -> Finding:  # fmt: skip
    at = f"at {results.describe(ledger.row)}" if results.axes else "here"
    return Finding(
        results.name, RULE, state, numbers=numbers, claims=(_claim(results, term),),
        evidence=declared_evidence(results, term) | {"term": term.term},
        words={"at": at, "step": STEP_WORDS[ledger.form], "name": LABELS[term.term].lower()},
    )  # fmt: skip


def _claim(results: ExperimentResults, term: LedgerRow) -> Claim:
    """That a term takes longer than at the reference."""
    return claim_of(term.claimed, RULE, term.TABLE, term.term, *results.point_key(term.row))


RULES = (
    Rule(
        RULE, largest_loss, part=STEP,
        says={
            CLEAR: "{at} the largest loss is {name}, {loss}: without it the {step} reaches "
            "{share} of the ideal.",
            ATTENTION: "{at} a {step} takes {by rate} by its rate of samples, {own} by its step "
            "times.",
            NOTE: "{at} no loss is named: {name} takes {loss} of the {step}.",
        },
        next={
            ATTENTION: "check the clock and the unit of the step times, and which samples the rate "
            "counts",
        },
    ),
)  # fmt: skip
