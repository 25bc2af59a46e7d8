"""Steps held against the machine, read from the tables `efficiency` and `exchange`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.experiment.step_ledger import Ledger, ledgers
from scalesweep.tables.efficiency import MACHINE, efficiency_column
from scalesweep.tables.exchange import NAMES, exchange_column


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
    names = {
        name: efficiency_column(name, results.axes)
        for name in ("kind", "term", "value", "low", "high", "machine", "machine_from")
    }
    terms: dict[Key, dict[str, Reached]] = {}
    for row in results.rows("efficiency") if last else []:
        if row[names["kind"]] != MACHINE:
            continue
        low, high = (row[names[end]] for end in ("low", "high"))
        term, known = str(row[names["term"]]), finite(low, high)
        terms.setdefault(_key(results, row), {})[term] = Reached(
            term, float(row[names["value"]]), float(low) if known else None,
            float(high) if known else None, float(row[names["machine"]]),
            str(row[names["machine_from"]]),
        )  # fmt: skip
    exchanges = {
        _key(results, row): {name: row[exchange_column(name, results.axes)] for name in NAMES}
        for row in results.rows("exchange")
    }
    held = []
    for ledger in last.values():
        key = _key(results, ledger.row)
        if key in terms or key in exchanges:
            held.append(Held(ledger.row, ledger, terms.get(key, {}), exchanges.get(key)))
    return held


def _key(results: ExperimentResults, row: Row) -> Key:
    return (*results.key(row, results.axes), row["source"])
