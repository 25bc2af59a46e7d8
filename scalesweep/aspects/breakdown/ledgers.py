"""The ledgers of an experiment, read from its tables `efficiency` and `first_epoch`."""

from collections.abc import Mapping
from dataclasses import dataclass

from scalesweep.aspects.breakdown.efficiency import (
    AT_REFERENCE,
    CLOCK,
    ELAPSED,
    IDEAL,
    IMBALANCE,
    LEDGER,
    LOCAL_BATCH,
    OUTSIDE,
    SLOWER,
)
from scalesweep.aspects.breakdown.table import EfficiencyRow, LedgerRow
from scalesweep.experiment.results import ExperimentResults, Key, Row

# The parts of a step in the order of the ledger; those of computation come in two ways.
PARTS = (
    "compute", "busy", AT_REFERENCE, LOCAL_BATCH, CLOCK, SLOWER, "input", "checkpoint",
    "validation", "logging", "between", "persistent", "alternating", IMBALANCE, "stalls",
    "transfer", "sharded", "tensor", "pipeline", "communication", "barrier", OUTSIDE,
    "unattributed",
)  # fmt: skip

# Shares of a step: of what is outside of the accounted steps, and by which these may be longer.
MOST_OUTSIDE, LONGER_STEPS = 0.5, 0.05


@dataclass(frozen=True)
class Term:
    """A part of a step in ms, what it takes more than in the ideal step, and what of the two the
    machine needs; None: missing.

    ``p``: of the loss being none.
    """

    value: float
    low: float | None
    high: float | None
    loss: float | None
    loss_low: float | None
    loss_high: float | None
    machine: float | None
    machine_loss: float | None
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
    loss = row.loss
    return Term(
        value=row.value.value,
        low=row.value.low,
        high=row.value.high,
        loss=loss.value if loss else None,
        loss_low=loss.low if loss else None,
        loss_high=loss.high if loss else None,
        machine=row.machine.value if row.machine else None,
        machine_loss=row.machine_loss.value if row.machine_loss else None,
        p=row.loss_p,
    )
