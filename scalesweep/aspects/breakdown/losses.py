"""Findings on the ledger: what keeps the largest scale of a series from the ideal."""

from collections.abc import Sequence
from dataclasses import replace

from scalesweep.analysis.multiple import STEP
from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.analysis.step_account import EPOCHS, NOEXCHANGE, STEP_WORDS
from scalesweep.analysis.step_work import INPUT
from scalesweep.aspects.breakdown.ledgers import Ledger, Term, ledgers
from scalesweep.aspects.steps.causes import NOTABLE, rounded
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.experiment.results import ExperimentResults, Row
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
    evidence_of,
    number_of,
)

RULE = "largest loss"
# What a term is called when it is a loss.
WORDS = {
    "local_batch": "the smaller local batch",
    "clock": "a lower clock of the cores, at most",
    "slower": "slower computation",
    "input": "waiting for input",
    "checkpoint": "checkpoints",
    "validation": "validation",
    "logging": "logging",
    "between": "host time between steps",
    "persistent": "load imbalance",
    "alternating": "jitter",
    "stalls": "stalls",
    "transfer": "exposed communication",
    "sharded": "the exchange of parameters and gradients",
    "tensor": "tensor-parallel exchange",
    "pipeline": "pipeline wait",
    "communication": "exposed communication",
    "barrier": "the barrier",
    "outside": "time outside of the steps",
}
# What to do about a loss, by its term.
DO = {
    "local_batch": "give each rank a larger batch: a small one computes slowly",
    "slower": "compare fewer threads per rank: ranks share cores, memory or disks",
    "clock": "look at limits of power and heat: cores have a lower clock than alone",
    "input": "compare more parallel reads, more prefetching or a cache",
    "checkpoint": "write checkpoints less often, or beside the steps",
    "validation": "validate less often, or on fewer samples",
    "logging": "log less often, and on no rank alone",
    "between": "look at what the program does between its steps: callbacks, logging, copies",
    "persistent": "look at the slow rank and its host: it is late in every step",
    "stalls": "look at the steps that stall: checkpoints, garbage collection, file systems",
    "alternating": "look for jitter: other work on the nodes, threads that share cores",
    "transfer": "profile the exchange (docs/guide/profiles.md)",
    "sharded": "compare `reshard_after_forward: false`, or shards within a node",
    "tensor": "keep `tp` within a node, or compare a smaller one",
    "pipeline": "compare more micro-batches, or an interleaved schedule",
    "communication": "record time stamps of each step: they tell waiting from transfer",
    "barrier": "run longer epochs, or look at what ranks do at their ends",
    "outside": "record what lies between steps (docs/guide/time_breakdown.md)",
    "unattributed": "run more and longer steps, or profile one run",
}
# Why steps are shorter, or longer, than the rate of samples says.
CONTRADICTS = (
    "most of the time is outside of the timed steps, or the two are of different samples",
    "a clock or a unit is wrong, or the two are of different samples",
)
# Terms of computation; a program without them only reads.
_WORK = frozenset({"compute", "busy", "at_reference", "local_batch", "clock", "slower"})
# Of what the ranks in the middle do by themselves, and the terms that are measured from there.
_MIDDLE = ("local_batch", "clock", "slower", "input", "between")
_IMBALANCE = ("persistent", "alternating")
# Single delays may pass if ranks wait for each other within a step.
_PASSING, _WITHIN = ("stalls", "alternating"), frozenset({"sharded", "tensor", "pipeline"})
REST = "unattributed"
LONG = 5e3  # ms from which a step is given in s


def largest_loss(results: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, the largest loss against the ideal step.

    Nothing if the step is less than 2 % longer than the ideal; a note if more of it is unattributed
    than any term explains. What is claimed is that the term takes longer than at the reference, of
    every term; that it is the largest is told by its size.
    """
    largest = largest_points(results, ledgers(results))
    every = tuple(
        _claim(results, ledger, name)
        for ledger in largest
        for name, part in ledger.parts.items()
        if name in WORDS and part.loss is not None
    )
    tested = [Finding(results.name, RULE, SILENT, "", claims=every)] if every else []
    said = [_finding(results, ledger) for ledger in largest]
    return [*filter(None, said), *tested]


def largest_points(results: ExperimentResults, every: Sequence[Ledger]) -> list[Ledger]:
    """The ledger of the largest scale of each series."""
    last: dict[tuple[object, ...], Ledger] = {}
    for ledger in every:
        if ledger.ideal is not None and ledger.elapsed.loss is not None:
            last[(*results.key(ledger.row, results.series_names), ledger.row["source"])] = ledger
    return list(last.values())


def _finding(results: ExperimentResults, ledger: Ledger) -> Finding | None:
    """The sentence on the largest loss of a point; None if there is none to speak of."""
    assert ledger.ideal is not None
    whole, ideal = ledger.elapsed, ledger.ideal.value
    parts = _netted(ledger)
    losses = {
        name: part.loss for name, part in parts.items() if name in WORDS and part.loss is not None
    }
    if not losses or whole.loss is None or whole.loss < NOTABLE * ideal:
        return None
    term = max(losses, key=lambda name: losses[name])
    if (unnamed := _unnamed(results, ledger, losses[term])) is not None:
        return unnamed
    doubt = _doubt(results, ledger, term, parts[term])
    reached = min(1.0, ideal / (whole.value - losses[term]))
    numbers = _loss(ledger, parts[term]), number_of("reached", reached, "1")
    made = _loss_finding(results, ledger, OPEN if doubt else CLEAR, term, numbers)
    words = {**made.words, "name": _named(ledger, term), "share": f"{100 * reached:.0f} %"}
    return replace(made, reason=doubt, words=words, next=DO[term])


def _loss(ledger: Ledger, part: Term) -> Number:
    factor, unit = scale_of(ledger)
    ends = (part.loss, part.loss_low, part.loss_high)
    value, low, high = (None if end is None else end * factor for end in ends)
    return number_of("loss", value, unit, low, high)


def _doubt(results: ExperimentResults, ledger: Ledger, term: str, largest: Term) -> str:
    """Why a loss is open; empty if it is not."""
    if largest.claimed >= SIGNIFICANT:
        return "the repeats leave it open"
    if term in _PASSING and not _WITHIN.isdisjoint(ledger.parts):
        return "ranks wait for each other within a step"
    key = _key(results, ledger.row)
    ticks = [r.resolution_ms for r in results.of(CauseRow) if _key(results, r.row) == key]
    return rounded(largest.loss or 0.0, max(ticks, default=0.0))


def _netted(ledger: Ledger) -> dict[str, Term]:
    """The terms, those of imbalance against the reference too: a rank is behind the ones in the
    middle by what these are faster than at the reference, and no step is longer for that."""
    parts = dict(ledger.parts)
    left = -sum(parts[name].loss or 0.0 for name in _MIDDLE if name in parts)
    for name in _IMBALANCE:
        loss = parts[name].loss if name in parts else None
        if loss is not None and (less := min(left, loss)) > 0:
            low, high = (
                None if end is None else end - less
                for end in (parts[name].loss_low, parts[name].loss_high)
            )
            parts[name] = replace(parts[name], loss=loss - less, loss_low=low, loss_high=high)
            left -= less
    return parts


def _named(ledger: Ledger, term: str) -> str:
    """What a term is called as a loss, by what the program does."""
    work = sum(part.value for name, part in ledger.parts.items() if name in _WORK)
    if term == INPUT and work < NOTABLE * ledger.elapsed.value:
        return "reading"
    if term == "slower" and ledger.form in (EPOCHS, NOEXCHANGE) and "input" not in ledger.parts:
        return "slower input and computation"
    return WORDS[term]


def _unnamed(results: ExperimentResults, ledger: Ledger, largest: float) -> Finding | None:
    """The sentence if no term can be named; None if one can."""
    factor, unit = scale_of(ledger)
    whole, rest = ledger.elapsed.value, ledger.parts[REST]
    if ledger.contradicts:
        own = whole - ledger.parts["outside"].value
        numbers = number_of("by rate", whole * factor, unit), number_of("own", own * factor, unit)
        made = _loss_finding(results, ledger, ATTENTION, "outside", numbers)
        return replace(made, reason=CONTRADICTS[own > whole])
    if largest <= abs(rest.loss or 0.0):
        made = _loss_finding(results, ledger, NOTE, REST, (_loss(ledger, rest),))
        return replace(made, reason="more than any term explains", next=DO[REST])
    # Terms that the reference may have too, without their name.
    nameless = {
        name: part.value
        for name, part in ledger.parts.items()
        if name in WORDS and part.loss is None and max(part.value, part.high or 0.0) > largest
    }
    if not nameless:
        return None
    term = max(nameless, key=lambda name: nameless[name])
    takes = number_of("loss", nameless[term] * factor, unit)
    made = _loss_finding(results, ledger, NOTE, term, (takes,))
    return replace(made, reason="the reference, which does not print it, may have the same")


def scale_of(ledger: Ledger) -> tuple[float, str]:
    """By what ms are multiplied in sentences, and the unit then."""
    return (1.0, "ms") if ledger.elapsed.value < LONG else (1e-3, "s")


def _key(results: ExperimentResults, row: Row) -> tuple[object, ...]:
    return (*results.key(row, results.axes), row["source"])


def _loss_finding(
    results: ExperimentResults, ledger: Ledger, state: str, term: str, numbers: tuple[Number, ...]
) -> Finding:
    at = f"at {results.describe(ledger.row)}" if results.axes else "here"
    evidence = evidence_of(results, "efficiency", ledger.row) | {"term": term}
    return Finding(
        results.name, RULE, state, evidence=evidence, numbers=numbers,
        claims=(_claim(results, ledger, term),) if term in ledger.parts else (),
        words={"at": at, "step": STEP_WORDS[ledger.form], "name": WORDS.get(term, term)},
    )  # fmt: skip


def _claim(results: ExperimentResults, ledger: Ledger, name: str) -> Claim:
    """That a term takes longer than at the reference."""
    return claim_of(ledger.parts[name].claimed, RULE, name, *_key(results, ledger.row))


RULES = (
    Rule(
        RULE, largest_loss, part=STEP, figures=("waterfall", "ledger"),
        says={
            CLEAR: "{at} the largest loss is {name}, {loss}: without it the {step} reaches "
            "{share} of the ideal.",
            ATTENTION: "{at} a {step} takes {by rate} by its rate of samples, {own} by its step "
            "times.",
            NOTE: "{at} no loss is named: {name} takes {loss}.",
        },
        next={
            ATTENTION: "check the clock and the unit of the step times, and which samples the rate "
            "counts",
        },
    ),
)  # fmt: skip
