"""Findings on the ledger: what keeps the largest scale of a series from the ideal."""

from collections.abc import Sequence

from scalesweep.analysis.step_account import EPOCHS
from scalesweep.core.formatting import number, percent, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.step_ledger import Ledger, Term, ledgers
from scalesweep.findings.base import CONFIRMED, NOTE, OPEN, Finding, marked

RULE = "largest loss"
# What a term is when it is a loss.
WORDS = {
    "local_batch": "computation that is slower by its smaller local batch",
    "slower": "computation that is slower on each rank than at the reference",
    "input": "waiting for input",
    "persistent": "waiting for the rank that is always the slowest (persistent imbalance)",
    "alternating": "waiting for whichever rank is the slowest in a step (alternating imbalance)",
    "transfer": "transfer, the exchange of gradients itself",
    "barrier": "the barrier at the ends of epochs",
}
# A loss below this share of the ideal step is no reason to act.
NOTABLE = 0.02


def largest_loss(study: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, the largest loss against the ideal step.

    Nothing where the step is not clearly longer than the ideal, or by less than 2 %; a note where
    more of it is unattributed than any term explains.
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
    step = "epoch" if one.form == EPOCHS else "step"
    where = f"at {study.describe(one.row)}" if study.axes else "here"
    head = (
        f"{where} {'an' if step == 'epoch' else 'a'} {step} takes {number(whole.value)} ms, "
        f"{number(whole.loss)} ms more than the ideal {number(ideal)} ms"
    )
    rest = one.parts["unattributed"].loss or 0.0
    if largest.loss <= abs(rest):
        text = (
            f"{head}; {number(rest)} ms of that are unattributed, more than any part explains: "
            "measure with more and longer steps, or with a profile"
        )
        return [_made(study, one, NOTE, f"{text}.", largest)]
    interval = with_interval(largest.loss, largest.loss_low, largest.loss_high)
    reached = ideal / (whole.value - largest.loss)
    text = (
        f"{head}; the largest part is {WORDS[ranked[0]]}, {interval} ms: without it the {step} "
        f"would reach {percent(reached)} of the ideal instead of {percent(ideal / whole.value)}"
    )
    sure = _sure(largest, [losses[name] for name in ranked[1:]])
    text += "" if sure else "; not confirmed as the largest by its interval"
    return [_made(study, one, CONFIRMED if sure else OPEN, f"{text}.", largest)]


def _sure(largest: Term, others: Sequence[Term]) -> bool:
    """Whether the interval is clear of nothing and of what the other terms take."""
    if largest.loss_low is None:
        return False
    return all(largest.loss_low > max(0.0, other.loss or 0.0) for other in others)


def _made(study: ExperimentResults, one: Ledger, level: str, text: str, term: Term) -> Finding:
    evidence = {
        "experiment": study.name,
        "table": "efficiency",
        "key": {name: one.row.get(name) for name in study.axes} | {"source": one.row["source"]},
        "numbers": {"loss": term.loss, "low": term.loss_low, "high": term.loss_high},
        "figure": "ledger",
    }
    return Finding(study.name, RULE, level, marked(one.row["source"], text), evidence)
