"""Findings on the ledger: what keeps the largest scale of a series from the ideal."""

from collections.abc import Sequence
from dataclasses import replace

from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.analysis.step_account import EPOCHS, NOEXCHANGE, STEP_WORDS
from scalesweep.analysis.step_work import INPUT
from scalesweep.aspects.breakdown.ledgers import Ledger, Term, ledgers
from scalesweep.aspects.steps.causes import NOTABLE, rounded
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.core.formatting import number, with_interval
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import CLEAR, NOTE, OPEN, SILENT, Claim, Finding, claim_of, marked

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
    largest = parts[term]
    if (open_end := _abstained(results, ledger, losses[term])) is not None:
        return open_end
    factor, unit = scale_of(ledger)
    low, high = (None if v is None else v * factor for v in (largest.loss_low, largest.loss_high))
    interval = with_interval(losses[term] * factor, low, high, unit)
    reached = min(1.0, ideal / (whole.value - losses[term]))
    text = (
        f"{_where(results, ledger)} the largest loss is {_named(ledger, term)}, {interval}: "
        f"without it the {STEP_WORDS[ledger.form]} reaches {whole_percent(reached)} of the ideal"
    )
    doubt = _doubt(results, ledger, term, largest)
    state = OPEN if doubt else CLEAR
    finding = _loss_finding(results, ledger, state, f"{text}.", largest, term)
    return replace(finding, reason=doubt)


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


def _where(results: ExperimentResults, ledger: Ledger) -> str:
    return f"at {results.describe(ledger.row)}" if results.axes else "here"


def _abstained(results: ExperimentResults, ledger: Ledger, largest: float) -> Finding | None:
    """The sentence if no term can be named; None if one can."""
    assert ledger.ideal is not None
    factor, unit = scale_of(ledger)
    step, whole = STEP_WORDS[ledger.form], ledger.elapsed.value * factor
    head = f"{_where(results, ledger)} {'an' if ledger.form == EPOCHS else 'a'} {step} takes "
    if ledger.contradicts:
        own = whole - ledger.parts["outside"].value * factor
        text = (
            f"{head}{number(whole)} {unit} by its rate of samples, {number(own)} {unit} by its "
            f"step times: {CONTRADICTS[own > whole]}."
        )
        return _loss_finding(results, ledger, OPEN, text, ledger.parts["outside"], "outside")
    rest = ledger.parts[REST]
    if largest <= abs(rest.loss or 0.0):
        text = (
            f"{head}{number(whole)} {unit}, not the ideal {number(ledger.ideal.value * factor)} "
            f"{unit}; {number((rest.loss or 0.0) * factor)} {unit} are unattributed, more than any "
            "term explains."
        )
        return _loss_finding(results, ledger, NOTE, text, rest, REST)
    # Terms that the reference may have too, without their name.
    nameless = {
        name: part.value
        for name, part in ledger.parts.items()
        if name in WORDS and part.loss is None and max(part.value, part.high or 0.0) > largest
    }
    if not nameless:
        return None
    term = max(nameless, key=lambda name: nameless[name])
    text = (
        f"{_where(results, ledger)} no loss is named: {WORDS[term]} takes "
        f"{number(nameless[term] * factor)} {unit}, and the reference, which does not print it, "
        "may have the same."
    )
    return _loss_finding(results, ledger, OPEN, text, ledger.parts[term], term)


def scale_of(ledger: Ledger) -> tuple[float, str]:
    """By what ms are multiplied in sentences, and the unit then."""
    return (1.0, "ms") if ledger.elapsed.value < LONG else (1e-3, "s")


def whole_percent(share: float) -> str:
    """A share in whole percent, as verdicts write it with an interval."""
    return f"{100 * share:.0f} %"


def _key(results: ExperimentResults, row: Row) -> tuple[object, ...]:
    return (*results.key(row, results.axes), row["source"])


def _loss_finding(
    results: ExperimentResults, ledger: Ledger, level: str, text: str, part: Term, term: str
) -> Finding:
    evidence = {
        "experiment": results.name,
        "table": "efficiency",
        "key": {name: ledger.row.get(name) for name in results.axes}
        | {"source": ledger.row["source"]},
        "numbers": {"loss": part.loss, "low": part.loss_low, "high": part.loss_high},
        "term": term,
        "contradicts": ledger.contradicts,
        "repeats": ledger.row.get("repeats"),
        "share": None if ledger.ideal is None else ledger.ideal.value / ledger.elapsed.value,
    }
    claims = (_claim(results, ledger, term),) if term in ledger.parts else ()
    said = marked(ledger.row["source"], text)
    return Finding(results.name, RULE, level, said, evidence, claims=claims)


def _claim(results: ExperimentResults, ledger: Ledger, name: str) -> Claim:
    """That a term takes longer than at the reference."""
    return claim_of(ledger.parts[name].claimed, RULE, name, *_key(results, ledger.row))
