"""The ledgers of an experiment, read from its table `efficiency`."""

from collections.abc import Mapping
from dataclasses import dataclass

from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.tables.efficiency import (
    AT_REFERENCE,
    CLOCK,
    ELAPSED,
    IDEAL,
    LEDGER,
    LOCAL_BATCH,
    OUTSIDE,
    SLOWER,
    efficiency_column,
)

# The parts of a step in the order of the ledger; those of computation come in two ways.
PARTS = (
    "compute", "busy", AT_REFERENCE, LOCAL_BATCH, CLOCK, SLOWER, "input", "checkpoint",
    "validation", "logging", "between", "mixed", "persistent", "alternating", "stalls", "transfer",
    "communication", "barrier", OUTSIDE, "unattributed",
)  # fmt: skip

# Shares of a step: of what is outside of the accounted steps, and by which these may be longer.
MOST_OUTSIDE, LONGER_STEPS = 0.5, 0.05


@dataclass(frozen=True)
class Term:
    """A part of a step in ms, what it takes more than in the ideal step, and what of the two the
    machine needs; None: missing.

    ``lead``, only of the largest loss: how far it lies above each other one (and 0), with its lower
    95 % bound and the p value of that (``analysis.joint``).
    """

    value: float
    low: float | None
    high: float | None
    loss: float | None
    loss_low: float | None
    loss_high: float | None
    machine: float | None
    machine_loss: float | None
    lead: float | None = None
    lead_low: float | None = None
    lead_p: float | None = None


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


def ledgers(results: ExperimentResults) -> list[Ledger]:
    """One for each point and source, in the order of the table: series by series, by scale."""
    names = {name: efficiency_column(name, results.axes) for name in Term.__annotations__}
    form, kind, term = (efficiency_column(name, results.axes) for name in ("form", "kind", "term"))
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in results.rows("efficiency"):
        if row[kind] == LEDGER:
            groups.setdefault((*results.key(row, results.axes), row["source"]), []).append(row)
    ledgers = []
    for rows in groups.values():
        terms = {
            str(row[term]): Term(
                **{name: float(row[column]) if finite(row[column]) else None
                   for name, column in names.items()}  # type: ignore[arg-type]
            )
            for row in rows
        }  # fmt: skip
        parts = {name: terms[name] for name in PARTS if name in terms}
        ledgers.append(Ledger(rows[0], str(rows[0][form]), parts, terms[ELAPSED], terms.get(IDEAL)))
    return ledgers
