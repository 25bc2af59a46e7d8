"""Steps held against the machine, read from the tables `efficiency` and `exchange`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.aspects.breakdown.efficiency import MACHINE
from scalesweep.aspects.breakdown.ledgers import Ledger, ledgers
from scalesweep.aspects.breakdown.table import EfficiencyRow, ExchangeRow
from scalesweep.experiment.results import ExperimentResults, Key, Row


@dataclass(frozen=True)
class Reached:
    """What a term of a step reaches of what the machine could do; None where it has no interval."""

    term: str
    share: float
    low: float | None
    high: float | None
    least_ms: float
    where: str  # the probe

    @property
    def own_ms(self) -> float:
        """What the term takes."""
        return self.least_ms / self.share


@dataclass(frozen=True)
class Held:
    """A point's step against the machine; ``exchange`` holds the row of that table, if any."""

    row: Row
    ledger: Ledger
    terms: Mapping[str, Reached]
    exchange: Mapping[str, Any] | None


def held_against(results: ExperimentResults) -> list[Held]:
    """For each series, at its largest scale, what is known."""
    last: dict[Key, Ledger] = {}
    for ledger in ledgers(results):
        last[(*results.key(ledger.row, results.series_names), ledger.row["source"])] = ledger
    terms: dict[Key, dict[str, Reached]] = {}
    for row in results.of(EfficiencyRow) if last else []:
        if row.kind != MACHINE or row.machine is None:
            continue
        share, least = row.value, row.machine.value
        terms.setdefault(_key(results, row.row), {})[row.term] = Reached(
            row.term, share.value, share.low, share.high, least, str(row.machine_from)
        )
    exchanges = {_key(results, sent.row): sent.cells for sent in results.of(ExchangeRow)}
    held = []
    for ledger in last.values():
        key = _key(results, ledger.row)
        if key in terms or key in exchanges:
            held.append(Held(ledger.row, ledger, terms.get(key, {}), exchanges.get(key)))
    return held


def _key(results: ExperimentResults, row: Row) -> Key:
    return (*results.key(row, results.axes), row["source"])
