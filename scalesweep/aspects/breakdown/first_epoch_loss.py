"""Findings on the first epoch: what keeps it from the ideal, and whether the files are the cause.

Ranks that read only meet at the end of the epoch, so what all of them take longer is no waiting for
each other. Later epochs make the same batches from memory: what they take bounds what the node's
own work can have cost in the first one. What is left is the file system, or the way to it. Nothing
of this follows where the reference read from memory as well, or where later epochs do not make the
batches again (``KEPT``), so then no cause is named.
"""

from scalesweep.analysis.multiple import STEP
from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.analysis.step_account import REST
from scalesweep.aspects.breakdown.efficiency import IMBALANCE
from scalesweep.aspects.breakdown.ledgers import Ledger, Term, ledgers
from scalesweep.aspects.breakdown.losses import largest_points
from scalesweep.aspects.breakdown.table import FirstEpochRow
from scalesweep.aspects.steps.causes import NOTABLE
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    SILENT,
    Claim,
    Finding,
    Rule,
    claim_of,
    evidence_of,
    number_of,
    point_key,
)

RULE, LESS = "first epoch", "first epoch unattributed"
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
    later = {point_key(results, ledger.row): ledger for ledger in ledgers(results)}
    largest = largest_points(results, ledgers(results, FirstEpochRow))
    tested = tuple(_claim(results, ledger, name) for ledger in largest for name in _losses(ledger))
    silent = [Finding(results.name, RULE, SILENT, "", claims=tested)] if tested else []
    said = [_finding(results, each, later.get(point_key(results, each.row))) for each in largest]
    return [*filter(None, said), *silent]


def _losses(ledger: Ledger) -> dict[str, float]:
    """What the parts that may be named take more than at the reference."""
    parts = ledger.parts.items()
    return {n: part.loss for n, part in parts if n in WORDS and part.loss is not None}


def _claim(results: ExperimentResults, ledger: Ledger, name: str) -> Claim:
    return claim_of(ledger.parts[name].claimed, RULE, name, *point_key(results, ledger.row))


def _finding(results: ExperimentResults, ledger: Ledger, later: Ledger | None) -> Finding | None:
    """What is said of a point; None where there is no loss to speak of."""
    whole, ideal = ledger.elapsed, ledger.ideal
    assert ideal is not None
    losses = _losses(ledger)
    name = max(losses, key=lambda term: losses[term], default="")
    short = whole.loss is None or whole.loss < NOTABLE * ideal.value
    unclear = whole.loss_low is not None and whole.loss_low <= 0
    if not name or short or unclear:
        return None
    largest, rest = ledger.parts[name], abs(ledger.parts[REST].loss or 0.0)
    state = CLEAR if largest.claimed < SIGNIFICANT else OPEN
    rule, words = RULE, {"what": WORDS[name], "cause": "", "then": "repeat the runs"}
    loss = number_of("loss", losses[name] / 1e3, "s", *_seconds(largest))
    if losses[name] <= rest:
        rule, state = LESS, NOTE
        loss = number_of("loss", rest / 1e3, "s")
    elif state == CLEAR:
        words |= _cause(results, ledger, later, name, largest)
    evidence = evidence_of(results, FirstEpochRow.TABLE, ledger.row) | {"term": name}
    return Finding(
        results.name, rule, state, subject=results.describe(ledger.row), words=words,
        numbers=(loss, number_of("epoch", whole.value / 1e3, "s")), evidence=evidence,
        claims=(_claim(results, ledger, name),) if rule == RULE else (),
        reason="the repeats leave it open" if state == OPEN else "",
    )  # fmt: skip


def _seconds(term: Term) -> tuple[float | None, ...]:
    return tuple(end and end / 1e3 for end in (term.loss_low, term.loss_high))


def _cause(
    results: ExperimentResults, ledger: Ledger, later: Ledger | None, name: str, largest: Term
) -> dict[str, str]:
    """Whether it is the files that reading takes longer for; or why that is not known."""
    if name != INPUT:
        return {"then": "look at the ranks' times: one may have slower files"}
    own = later.parts.get(INPUT) if later else None
    point = parameters_at(results.entry, ledger.row)
    kept = next((key for key, value in KEPT.items() if point.get(key) == value), None)
    if later is None or own is None or later.ideal is None or ledger.ideal is None:
        why = "no later epochs show reading from memory"
    elif kept:
        why = f"with {kept} {point[kept]} later epochs do not decode again"
    elif ledger.ideal.value < FROM_FILES * later.ideal.value:
        why = "the reference may have read from memory"
    else:
        most = own.value if own.high is None else max(own.high, own.value)
        least = largest.loss_low if largest.loss_low is not None else largest.loss
        why = "later epochs read long too" if least is None or most > OWN_WORK * least else ""
    if why:
        return {"cause": f"; {why}", "then": "measure the files with a reading probe"}
    return {"cause": ": it is the files", "then": "spread the files, or stage them on the nodes"}


RULES = (
    Rule(
        RULE, first_epoch_loss, part=STEP, figures=("ledger-first",),
        says={CLEAR: "{subject}: the first epoch loses most to {what}, {loss}{cause}."},
        next={CLEAR: "{then}", OPEN: "{then}"},
    ),
    Rule(
        LESS, None, part=STEP, figures=("ledger-first",),
        says={
            NOTE: "{subject}: the first epoch takes {epoch}; {loss} are unattributed, more than "
            "any term explains."
        },
        next={NOTE: "let the program keep its times of reading"},
    ),
)  # fmt: skip
