"""Findings on steps: what keeps the largest scale of a series from the ideal; which ranks take
longer for what in which steps; ranks and hosts that are slower than the others; idle pipelines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from scalesweep.analysis import rank_stats
from scalesweep.analysis.multiple import STEP
from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.analysis.step_account import EPOCHS, NOEXCHANGE, REST, STEP_WORDS, STEPS
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
from scalesweep.aspects.steps import pipeline
from scalesweep.aspects.steps.breakdown import EfficiencyRow, FirstEpochRow, LedgerRow
from scalesweep.aspects.steps.causes import NOTABLE
from scalesweep.aspects.steps.ledgers import Ledger, behind, largest_points, ledgers
from scalesweep.aspects.steps.ranks import StragglerRow
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.aspects.steps.terms import OUTSIDE, SLOWER, TERMS
from scalesweep.core.formatting import counted
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
    estimate_of,
    number_of,
)
from scalesweep.table.declared import Estimate

LOSS, FIRST = "largest loss", "first epoch"
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
    """For each series, at its largest scale, the largest loss against the ideal step, that of the
    series farthest from it first; of programs that only read, that of the first epoch too.

    Nothing if the step is less than 2 % longer than the ideal; a note if more of it is unattributed
    than any term explains. What is claimed is that the term takes longer than at the reference, of
    every term; that it is the largest is told by its size.
    """
    largest = [
        ledger
        for table in (EfficiencyRow, FirstEpochRow)
        for ledger in sorted(
            largest_points(results, ledgers(results, table)), key=behind, reverse=True
        )
    ]
    every = tuple(
        _claim(results, term)
        for ledger in largest
        for name, term in ledger.parts.items()
        if TERMS[name].do and term.loss is not None
    )
    tested = [Finding(results.name, LOSS, SILENT, claims=every)] if every else []
    said = [_largest(results, ledger) for ledger in largest]
    return [*filter(None, said), *tested]


def _largest(results: ExperimentResults, ledger: Ledger) -> Finding | None:
    """The sentence on the largest loss of a point; None if there is none to speak of."""
    assert ledger.ideal is not None
    whole, ideal = ledger.elapsed, ledger.ideal.ms
    parts = netted(ledger)
    losses = {name: term.more for name, term in parts.items() if TERMS[name].do and term.more}
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
    return replace(made, reason=doubt, words=words, next=TERMS[name].do)


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
    return f"{TERMS[term].label.lower()} {100 * share:.0f} %" if share >= NOTABLE else ""


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
    return None


def _of_term(
    results: ExperimentResults, ledger: Ledger, state: str, term: LedgerRow,
    numbers: tuple[Number, ...],
) -> Finding:  # fmt: skip
    at = f"at {results.describe(ledger.row)}" if results.axes else "here"
    return Finding(
        results.name, FIRST if isinstance(term, FirstEpochRow) else LOSS, state,
        numbers=numbers, claims=(_claim(results, term),),
        evidence=declared_evidence(results, term) | {"term": term.term},
        words={"at": at, "step": STEP_WORDS[ledger.form], "name": TERMS[term.term].label.lower()},
    )  # fmt: skip


def _claim(results: ExperimentResults, term: LedgerRow) -> Claim:
    """That a term takes longer than at the reference."""
    return claim_of(term.claimed, LOSS, term.TABLE, term.term, *results.point_key(term.row))


BOUND, BOUND_FROM = "input wait", 0.2  # of a step, as TensorFlow's profiler calls it input-bound


def input_wait(results: ExperimentResults) -> list[Finding]:
    """The point whose steps wait for their input for the largest share of their time, if that is a
    fifth: where all ranks wait alike, no loss against an ideal shows it."""
    known = [of for of in ledgers(results) if of.form == STEPS and INPUT in of.parts]
    shares = [of.parts[INPUT].ms / of.elapsed.ms for of in known]
    if max(shares, default=0.0) < BOUND_FROM:
        return []
    share, most = max(zip(shares, known, strict=True), key=lambda item: item[0])
    at = f"At {results.describe(most.row)}, " if results.axes else ""
    return [
        Finding(
            results.name, BOUND, ATTENTION, words={"at": at, "share": f"{100 * share:.0f} %"},
            numbers=(number_of("waits", share, "1"),),
            evidence=declared_evidence(results, most.parts[INPUT]),
        )
    ]  # fmt: skip


CAUSES = "causes"
MOST_CAUSES = 4  # causes of a point
# What a cause is called, and what to do about it.
CAUSE_WORDS = {
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
    """The causes of each point that has been looked at, the largest gain first, as the points are;
    and all of them together, if steps gain 2 % more without all than without each."""
    wrong = {results.point_key(ledger.row) for ledger in ledgers(results) if ledger.contradicts}
    findings = []
    points = groupby(results.of(CauseRow), lambda row: results.point_key(row.row))
    groups = [[*group] for _, group in points]
    for *causes, together in sorted(groups, key=lambda of: -of[-1].gain_ms.value / of[-1].step_ms):
        doubt = CONTRADICTED if results.point_key(together.row) in wrong else ""
        findings += [_cause(results, row, doubt) for row in causes[:MOST_CAUSES]]
        more = together.gain_ms.value - sum(row.gain_ms.value for row in causes)
        if len(causes) > 1 and more >= NOTABLE * together.step_ms:
            what = f"{len(causes[:MOST_CAUSES])} causes hide each other"
            then = "remove all of them: one alone gains less"
            words = {"what": what, "it": "all of them", "then": then}
            gain = estimate_of("gain", together.decides, "ms")
            findings.append(_of_causes(results, together, words, (gain,), doubt))
    return findings


def _cause(results: ExperimentResults, row: CauseRow, doubt: str) -> Finding:
    """The number that is tested has the interval that decides, the other one three digits."""
    ranks, every = row.step_ranks.split(", "), row.pattern == EVERY
    who = f"rank{'s' * (len(ranks) > 1)} {row.step_ranks}"
    if row.cause == TRANSFER or len(ranks) > _MOST_RANKS:
        who = "all ranks" if row.cause == TRANSFER else counted(len(ranks), "rank")
    what, then = CAUSE_WORDS[row.cause]
    decides = estimate_of("gain", row.decides, "ms")
    assert row.ms is not None
    ms, gain = (decides, _plain(row.gain_ms)) if every else (_plain(row.ms), decides)
    where = "every step" if every else f"{row.steps:,.0f} of {row.of_steps:,.0f} steps"
    words = {"what": f"{who}: {what} +{ms} in {where}", "it": "it", "then": then.format(who=who)}
    finding = _of_causes(
        results, row, words, (number_of("ms", ms.value, "ms", ms.low, ms.high), gain), doubt
    )
    finding.evidence.update({"cause": row.cause, "pattern": row.pattern, "ranks": row.step_ranks})
    return finding


def _plain(estimate: Estimate) -> Number:
    return number_of("gain", float(f"{round(estimate.value, 3):.3g}"), "ms")


def _of_causes(
    results: ExperimentResults, row: CauseRow, words: dict[str, str], numbers: tuple[Number, ...],
    doubt: str,
) -> Finding:  # fmt: skip
    reason, subject = doubt or row.reason, results.describe(row.row) if results.axes else ""
    return Finding(
        results.name, CAUSES, OPEN if reason else CLEAR, numbers=numbers, reason=reason,
        subject=subject, words={**words, "at": f"At {subject}, " if subject else ""},
        evidence=declared_evidence(results, row),
    )  # fmt: skip


STRAGGLERS = "stragglers"
MAX_SENTENCES = 6
# What takes its time.
TIME_WORDS = {
    rank_stats.WORK: "own work in an epoch",
    rank_stats.INPUT: "wait for input in an epoch",
    rank_stats.STEP_WORK: "own work in a step",
    rank_stats.STEP_INPUT: "wait for input in a step",
    rank_stats.STEP: "step",
    rank_stats.EPOCH: "epoch",
}


def slow_ranks(results: ExperimentResults) -> list[Finding]:
    """Ranks and hosts that are slower than the others, each at the point where it is slowest."""
    named = sorted(results.of(StragglerRow), key=lambda row: (not row.clear, -row.excess))
    slow = {(row.time, row.rank, row.host): row for row in reversed(named)}
    return [_straggler(results, row) for row in reversed(slow.values())][:MAX_SENTENCES]


def _straggler(results: ExperimentResults, row: StragglerRow) -> Finding:
    who = f"host {row.host}" if row.rank is None else f"rank {row.rank}"
    who += f" on {row.host}" if row.host and row.rank is not None else ""
    units = "hosts" if row.rank is None else "ranks"
    words = {
        "who": who,
        "what": TIME_WORDS[row.time] if row.rank is not None else f"ranks' {TIME_WORDS[row.time]}",
        "others": f"the median of {row.of:,} {units}" if row.of > 2 else "the other's",
    }
    evidence = declared_evidence(results, row) | {"figure": f"ranks-{row.time}"}
    evidence["key"] |= {"time": row.time, "rank": row.rank, "host": row.host}
    return Finding(
        results.name, STRAGGLERS, CLEAR if row.clear else OPEN, words=words, evidence=evidence,
        subject=results.describe(row.row) if results.axes else "", reason=row.reason,
        numbers=(estimate_of("ratio", row.ratio, "1"),),
    )  # fmt: skip


_LOSS_SAYS = {
    CLEAR: "{at} the largest loss is {name}, {loss}: without it the {step} reaches {share} of the "
    "ideal.",
    ATTENTION: "{at} a {step} takes {by rate} by its rate of samples, {own} by its step times.",
    NOTE: "{at} no loss is named: {name} takes {loss} of the {step}.",
}
_LOSS_NEXT = {
    ATTENTION: "check the clock and the unit of the step times, and which samples the rate counts"
}
RULES = (
    Rule(LOSS, largest_loss, part=STEP, says=_LOSS_SAYS, next=_LOSS_NEXT),
    Rule(FIRST, None, part=STEP, says=_LOSS_SAYS, next=_LOSS_NEXT),
    Rule(
        CAUSES, step_causes, part=STEP,
        says={CLEAR: "{at}{what}; without {it} a step is {gain} shorter."},
        next={CLEAR: "{then}", OPEN: "repeat the runs"},
    ),
    Rule(
        BOUND, input_wait, says={ATTENTION: "{at}{share} of a step is a wait for input."},
        next={ATTENTION: "give all ranks more readers, or files in a faster place"},
    ),
    Rule(
        STRAGGLERS, slow_ranks,
        says={
            CLEAR: "{subject}: {who} is slow: its {what} takes {ratio:x} {others}.",
        },
        next={
            CLEAR: "check {who}: clock, memory, other processes",
            OPEN: "repeat the runs, and stamp the program's steps: stamps show who is late",
        },
    ),
    *pipeline.RULES,
)  # fmt: skip
