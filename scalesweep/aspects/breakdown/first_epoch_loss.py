"""Findings on the first epoch: what keeps it from the ideal, and whether the files are the cause.

Ranks that read only meet at the end of the epoch, so what all of them take longer is no waiting for
each other. Later epochs make the same batches from memory: what they take bounds what the node's
own work can have cost in the first one. What is left is the file system, or the way to it. Nothing
of this follows where the reference read from memory as well, or where later epochs do not make the
batches again (``KEPT``), so then no cause is named.
"""

from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.aspects.breakdown.efficiency import IMBALANCE
from scalesweep.aspects.breakdown.ledgers import Ledger, Term, ledgers
from scalesweep.aspects.breakdown.losses import largest_points, scale_of
from scalesweep.aspects.breakdown.table import FirstEpochRow
from scalesweep.aspects.steps.causes import NOTABLE
from scalesweep.core.formatting import number, with_interval
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, NOTE, OPEN, SILENT, Claim, Finding, claim_of, marked

RULE = "first epoch"
INPUT = "input"
WORDS = {
    INPUT: "reading",
    IMBALANCE: "load imbalance",
    "barrier": "the barrier at its end",
}
# The reference read its files if its first epoch took so many times as long as its later ones.
FROM_FILES = 2.0
# Of the loss: what later epochs take in all must be below this share of it.
OWN_WORK = 0.5
# Parameters of benchmarks by which later epochs take batches that are ready: decoded and mapped.
KEPT = {"cache": "memory", "pipeline": "cached"}


def first_epoch_loss(results: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, the largest loss of the first epoch.

    Nothing where the epoch is not clearly longer than the ideal, or by less than 2 %. What is
    claimed is that the part takes longer than at the reference.
    """
    every = ledgers(results, FirstEpochRow)
    later = {_key(results, ledger): ledger for ledger in ledgers(results)}
    largest = largest_points(results, every)
    tested = tuple(_claim(results, ledger, name) for ledger in largest for name in _losses(ledger))
    silent = [Finding(results.name, RULE, SILENT, "", claims=tested)] if tested else []
    said = [_finding(results, ledger, later.get(_key(results, ledger))) for ledger in largest]
    return [*filter(None, said), *silent]


def _losses(ledger: Ledger) -> dict[str, float]:
    """What the parts that may be named take more than at the reference."""
    return {
        name: part.loss
        for name, part in ledger.parts.items()
        if name in WORDS and part.loss is not None
    }


def _claim(results: ExperimentResults, ledger: Ledger, name: str) -> Claim:
    return claim_of(ledger.parts[name].claimed, RULE, name, *_key(results, ledger))


def _key(results: ExperimentResults, ledger: Ledger) -> tuple[object, ...]:
    return (*results.key(ledger.row, results.axes), ledger.row["source"])


def _finding(results: ExperimentResults, ledger: Ledger, later: Ledger | None) -> Finding | None:
    """The sentence on a point; None where there is no loss to speak of."""
    whole, ideal = ledger.elapsed, ledger.ideal
    assert ideal is not None
    losses = _losses(ledger)
    name = max(losses, key=lambda term: losses[term], default="")
    largest = ledger.parts.get(name)
    short = whole.loss is None or whole.loss < NOTABLE * ideal.value
    unclear = whole.loss_low is not None and whole.loss_low <= 0
    if largest is None or largest.loss is None or short or unclear:
        return None
    factor, unit = scale_of(ledger)
    where = f"at {results.describe(ledger.row)}"
    rest = abs(ledger.parts["unattributed"].loss or 0.0)
    if largest.loss <= rest:
        text = f"{where} the first epoch takes {number(whole.value * factor)} {unit}; "
        text += f"{number(rest * factor)} {unit} are unattributed, more than any term explains"
        state = NOTE
    else:
        low, high = (
            None if v is None else v * factor for v in (largest.loss_low, largest.loss_high)
        )
        state = CLEAR if largest.claimed < SIGNIFICANT else OPEN
        text = f"{where} the largest loss of the first epoch is {WORDS[name]}, "
        text += with_interval(largest.loss * factor, low, high, unit)
        text += _cause(results, ledger, later, name, largest) if state == CLEAR else ""
    evidence = {
        "experiment": results.name,
        "table": FirstEpochRow.TABLE,
        "key": {axis: ledger.row.get(axis) for axis in results.axes}
        | {"source": ledger.row["source"]},
        "numbers": {"loss": largest.loss, "low": largest.loss_low, "high": largest.loss_high},
        "term": name,
        "repeats": ledger.row.get("repeats"),
    }
    said = marked(ledger.row["source"], f"{text}.")
    claims = (_claim(results, ledger, name),)
    reason = "the repeats leave it open" if state == OPEN else ""
    return Finding(results.name, RULE, state, said, evidence, claims=claims, reason=reason)


def _cause(
    results: ExperimentResults, ledger: Ledger, later: Ledger | None, name: str, largest: Term
) -> str:
    """Whether it is the files that reading takes longer for; or why that is not known."""
    if name != INPUT:
        return ""
    own = later.parts.get(INPUT) if later else None
    point = parameters_at(results.entry, ledger.row)
    kept = next((key for key, value in KEPT.items() if point.get(key) == value), None)
    why = ""
    if later is None or own is None or later.ideal is None or ledger.ideal is None:
        why = "no later epochs show reading from memory"
    elif kept:
        why = f"with {kept} {point[kept]} later epochs do not decode again"
    elif ledger.ideal.value < FROM_FILES * later.ideal.value:
        why = "the reference may have read from memory"
    else:
        most = own.value if own.high is None else max(own.high, own.value)
        least = largest.loss_low if largest.loss_low is not None else largest.loss
        if least is None or most > OWN_WORK * least:
            why = "later epochs read long too"
    return f"; the cause is open: {why}" if why else ": it is the files"
