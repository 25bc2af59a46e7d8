"""The ledgers of an experiment, read from its tables `efficiency` and `first_epoch`."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from scalesweep.aspects.breakdown.efficiency import (
    AT_REFERENCE,
    CLOCK,
    ELAPSED,
    IDEAL,
    IMBALANCE,
    LEDGER,
    LOCAL_BATCH,
    OTHER,
    OUTSIDE,
    SLOWER,
)
from scalesweep.aspects.breakdown.table import EfficiencyRow, LedgerRow
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.table.declared import numbers_of

# The parts of a step in the order of the ledger; those of computation come in two ways.
PARTS = (
    "compute", "busy", AT_REFERENCE, LOCAL_BATCH, CLOCK, SLOWER, "input", "checkpoint",
    "validation", "logging", "between", "persistent", "alternating", IMBALANCE, "stalls",
    "transfer", "sharded", "tensor", "pipeline", "communication", "barrier", OTHER, OUTSIDE,
    "unattributed",
)  # fmt: skip

# Shares of a step: of what is outside of the accounted steps, and by which these may be longer.
MOST_OUTSIDE, LONGER_STEPS = 0.5, 0.05
SMALL = 0.005  # of a step: terms that readers are shown as one


@dataclass(frozen=True)
class Term:
    """A part of a step in ms, and what it takes more than in the ideal step; None: missing.

    ``p``: of the loss being none.
    """

    value: float
    low: float | None
    high: float | None
    loss: float | None
    loss_low: float | None
    loss_high: float | None
    p: float | None = None

    @property
    def claimed(self) -> float:
        """The p value of its taking longer than in the ideal step; 1 where nothing tells it."""
        return self.p if self.p is not None and self.loss is not None and self.loss > 0 else 1.0


@dataclass(frozen=True)
class Ledger:
    """Where the time of a point's step goes; ``row`` holds its parameters and source."""

    row: Row
    form: str
    parts: Mapping[str, Term]
    elapsed: Term
    ideal: Term | None

    @property
    def contradicts(self) -> bool:
        """Whether the rate of samples, which the step is of, and the accounted steps contradict
        each other: most of the step is outside of these, or they are longer than it."""
        outside = self.parts.get(OUTSIDE)
        if outside is None:
            return False
        share = outside.value / self.elapsed.value
        return share > MOST_OUTSIDE or share < -LONGER_STEPS


def with_other(every: Sequence[Ledger]) -> list[Ledger]:
    """The same for readers: terms below half a per cent of a step at every point, and their losses,
    are one term ``other``."""

    def small(name: str) -> bool:
        terms = [(each.elapsed.value, each.parts[name]) for each in every if name in each.parts]
        return name != "unattributed" and all(
            max(abs(term.value), abs(term.loss or 0.0)) < SMALL * step for step, term in terms
        )

    names = {name for ledger in every for name in ledger.parts if small(name)}
    if len(names) < 2:
        return list(every)
    return [replace(ledger, parts=_merged(ledger.parts, names)) for ledger in every]


def _merged(parts: Mapping[str, Term], names: AbstractSet[str]) -> dict[str, Term]:
    own = [term for name, term in parts.items() if name in names]
    kept = {name: term for name, term in parts.items() if name not in names}
    losses = [term.loss for term in own if term.loss is not None]
    value, loss = sum(term.value for term in own), sum(losses) if losses else None
    other = Term(value, None, None, loss, None, None)
    return {**kept, OTHER: other} if own else kept


def ledgers(results: ExperimentResults, table: type[LedgerRow] = EfficiencyRow) -> list[Ledger]:
    """One for each point and source, in the order of the table: series by series, by scale.

    ``table``: EfficiencyRow, or FirstEpochRow for the first epoch.
    """
    groups: dict[Key, list[LedgerRow]] = {}
    for row in results.of(table):
        if row.kind == LEDGER:
            key = (*results.key(row.point, results.axes), row.source)
            groups.setdefault(key, []).append(row)
    ledgers = []
    for rows in groups.values():
        terms = {row.term: _term(row) for row in rows}
        parts = {name: terms[name] for name in PARTS if name in terms}
        first = rows[0]
        ledgers.append(Ledger(first.row, first.form, parts, terms[ELAPSED], terms.get(IDEAL)))
    return ledgers


def _term(row: LedgerRow) -> Term:
    return Term(*numbers_of(row.value), *numbers_of(row.loss), p=row.loss_p)  # type: ignore[arg-type]
