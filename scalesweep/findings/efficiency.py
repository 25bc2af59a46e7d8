"""Findings on the ledger: what keeps the largest scale of a series from the ideal."""

from collections.abc import Sequence

from scalesweep.analysis.step_account import EPOCHS, NOEXCHANGE, STEP_WORDS
from scalesweep.core.formatting import number, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.step_ledger import Ledger, Term, ledgers
from scalesweep.findings.base import CONFIRMED, NOTE, OPEN, Finding, marked

RULE = "largest loss"
# What a term is when it is a loss.
WORDS = {
    "local_batch": "computation that is slower by its smaller local batch",
    "clock": "computation that is slower by a lower clock of the cores (the most that it explains)",
    "slower": "computation that is slower on each rank than at the reference",
    "input": "waiting for input",
    "persistent": "waiting for the rank that is always the slowest (persistent imbalance)",
    "alternating": "waiting for whichever rank is the slowest in a step (alternating imbalance)",
    "transfer": "transfer, the exchange of gradients itself",
    "communication": "communication, waiting for other ranks and transfer together",
    "barrier": "the barrier at the ends of epochs",
    "outside": "what is outside of the accounted steps: the warm-up of a first epoch, and the ends "
    "of the timed part",
}
# The same where a record does not split input from computation.
WHOLE = "input and computation, which take longer on each rank than at the reference"
REST = "unattributed"
LONG = 5e3  # ms from which a step is given in s
# A loss below this share of the ideal step is no reason to act.
NOTABLE = 0.02


def largest_loss(study: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, the largest loss against the ideal step.

    Nothing where the step is not clearly longer than the ideal, or by less than 2 %; a note where
    more of it is unattributed than any term explains, and none is named where the interval of the
    largest is wider than it.
    """
    last: dict[tuple[object, ...], Ledger] = {}
    for one in ledgers(study):
        if one.ideal is not None and one.elapsed.loss is not None:
            last[(*study.key(one.row, study.series_names), one.row["source"])] = one
    return [finding for one in last.values() for finding in _finding(study, one)]


def _finding(study: ExperimentResults, one: Ledger) -> list[Finding]:
    assert one.ideal is not None
    whole, ideal = one.elapsed, one.ideal.value
    assert whole.loss is not None
    if whole.loss < NOTABLE * ideal or (whole.loss_low is not None and whole.loss_low <= 0):
        return []
    losses = {
        name: part for name, part in one.parts.items() if name in WORDS and part.loss is not None
    }
    if not losses:
        return []
    ranked = sorted(losses, key=lambda name: losses[name].loss or 0, reverse=True)
    largest = losses[ranked[0]]
    assert largest.loss is not None
    step = STEP_WORDS[one.form]
    where = f"at {study.describe(one.row)}" if study.axes else "here"
    factor, unit = (1.0, "ms") if whole.value < LONG else (1e-3, "s")
    head = (
        f"{where} {'an' if step == 'epoch' else 'a'} {step} takes {number(whole.value * factor)} "
        f"{unit} instead of the ideal {number(ideal * factor)} {unit}"
    )
    rest = one.parts["unattributed"].loss or 0.0
    if largest.loss <= abs(rest):
        text = (
            f"{head}; {number(rest * factor)} {unit} of the difference are unattributed, more than "
            "any part explains: measure with more and longer steps, or with a profile"
        )
        return [_made(study, one, NOTE, f"{text}.", largest, REST)]
    low, high = (None if v is None else v * factor for v in (largest.loss_low, largest.loss_high))
    interval = with_interval(largest.loss * factor, low, high, unit)
    joint = one.form in (EPOCHS, NOEXCHANGE) and "input" not in one.parts
    named = WHOLE if joint and ranked[0] == "slower" else WORDS[ranked[0]]
    others = [losses[name] for name in ranked[1:]]
    if _wide(largest):
        text = (
            f"{head}; no part is named as the largest, because the interval of the candidate, "
            f"{named}, is wider than it: {interval}"
        )
        return [_made(study, one, OPEN, f"{text}.", largest, ranked[0], others)]
    reached, now = ideal / (whole.value - largest.loss), ideal / whole.value
    text = (
        f"{head}; the largest part is {named}, {interval}{_machine(largest)}: without it the "
        f"{step} would reach {_whole(reached)} of the ideal instead of {_whole(now)}"
    )
    sure = _sure(largest, others)
    text += "" if sure else "; not confirmed as the largest by its interval"
    level = CONFIRMED if sure else OPEN
    return [_made(study, one, level, f"{text}.", largest, ranked[0], others)]


def _machine(largest: Term) -> str:
    """What of a loss the machine needs, where a probe tells: no more than all of it."""
    if largest.machine_loss is None or not largest.loss or largest.loss <= 0:
        return ""
    share = min(max(largest.machine_loss, 0.0), largest.loss) / largest.loss
    return f", of which the machine explains {_whole(share)}"


def _whole(share: float) -> str:
    """A share in whole percent, as verdicts write it with an interval."""
    return f"{100 * share:.0f} %"


def _wide(largest: Term) -> bool:
    """Whether the interval of a loss is wider than the loss."""
    if largest.loss is None or largest.loss_low is None or largest.loss_high is None:
        return False
    return largest.loss_high - largest.loss_low > largest.loss


def _sure(largest: Term, others: Sequence[Term]) -> bool:
    """Whether the interval is clear of nothing and of what the other terms take."""
    if largest.loss_low is None:
        return False
    return all(largest.loss_low > max(0.0, other.loss or 0.0) for other in others)


def _made(
    study: ExperimentResults,
    one: Ledger,
    level: str,
    text: str,
    term: Term,
    name: str,
    others: Sequence[Term] = (),
) -> Finding:
    """The finding; ``margin``: how far the loss is from what its interval has to be clear of."""
    assert term.loss is not None
    margin = term.loss - max(0.0, *(other.loss or 0.0 for other in others), 0.0)
    evidence = {
        "experiment": study.name,
        "table": "efficiency",
        "key": {name: one.row.get(name) for name in study.axes} | {"source": one.row["source"]},
        "numbers": {"loss": term.loss, "low": term.loss_low, "high": term.loss_high},
        "term": name,
        "margin": margin,
        "repeats": one.row.get("repeats"),
        "share": None if one.ideal is None else one.ideal.value / one.elapsed.value,
    }
    return Finding(study.name, RULE, level, marked(one.row["source"], text), evidence)
