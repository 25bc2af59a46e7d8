"""The ledgers of an experiment, read from its tables `efficiency` and `first_epoch`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from scalesweep.aspects.steps.breakdown import EfficiencyRow, LedgerRow
from scalesweep.aspects.steps.terms import ELAPSED, IDEAL, OTHER, OUTSIDE, TERMS
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.table.declared import Estimate

# Shares of a step: of what is outside of the accounted steps, and by which these may be longer.
MOST_OUTSIDE, LONGER_STEPS = 0.5, 0.05
SMALL = 0.005  # of a step: terms that readers are shown as one


@dataclass(frozen=True)
class Ledger:
    """Where the time of a point's step goes; ``row`` holds its parameters and source."""

    row: Row
    form: str
    parts: Mapping[str, LedgerRow]
    elapsed: LedgerRow
    ideal: LedgerRow | None

    @property
    def contradicts(self) -> bool:
        """Whether the rate of samples, which the step is of, and the accounted steps contradict
        each other: most of the step is outside of these, or they are longer than it."""
        outside = self.parts.get(OUTSIDE)
        if outside is None:
            return False
        share = outside.ms / self.elapsed.ms
        return share > MOST_OUTSIDE or share < -LONGER_STEPS


def with_other(every: Sequence[Ledger], least: float = SMALL, losses: bool = False) -> list[Ledger]:
    """The same for readers: terms below a share of a step at every point, and their losses, are one
    term ``other``; by their ``losses`` alone if only these are shown."""

    def small(name: str) -> bool:
        terms = [(each.elapsed.ms, each.parts[name]) for each in every if name in each.parts]
        return name != "unattributed" and all(
            max(0.0 if losses else abs(term.ms), abs(term.more or 0.0)) < least * step
            for step, term in terms
        )

    names = {name for ledger in every for name in ledger.parts if small(name)}
    if len(names) < 2:
        return list(every)
    merged = []
    for ledger in every:
        parts = {name: term for name, term in ledger.parts.items() if name not in names}
        if own := [term for name, term in ledger.parts.items() if name in names]:
            more = [term.more for term in own if term.more is not None]
            value, loss = Estimate(sum(term.ms for term in own)), Estimate(sum(more))
            parts[OTHER] = replace(own[0], value=value, loss=loss if more else None, loss_p=None)
        merged.append(replace(ledger, parts=parts))
    return merged


def ledgers(results: ExperimentResults, table: type[LedgerRow] = EfficiencyRow) -> list[Ledger]:
    """One for each point and source, in the order of the table: series by series, by scale.

    ``table``: EfficiencyRow, or FirstEpochRow for the first epoch.
    """
    ledgers = []
    for _, group in groupby(results.of(table), lambda row: results.point_key(row.row)):
        terms = {row.term: row for row in group}
        parts = {name: terms[name] for name in TERMS if name in terms}
        whole = terms[ELAPSED]
        ledgers.append(Ledger(whole.row, whole.form, parts, whole, terms.get(IDEAL)))
    return ledgers


def behind(ledger: Ledger) -> float:
    """The step over the ideal one; 0 if there is none."""
    return ledger.elapsed.ms / ledger.ideal.ms if ledger.ideal else 0.0


def farthest_series(results: ExperimentResults, every: Sequence[Ledger]) -> list[Ledger]:
    """The ledgers of the series that is farthest from its ideal at its largest scale."""
    series: dict[tuple[object, ...], list[Ledger]] = {}
    for ledger in every:
        key = (*results.key(ledger.row, results.series_names), ledger.row["source"])
        series.setdefault(key, []).append(ledger)
    return max(series.values(), key=lambda of: behind(of[-1]), default=[])


def largest_points(results: ExperimentResults, every: Sequence[Ledger]) -> list[Ledger]:
    """The ledger of the largest scale of each series, of those that are held against an ideal."""
    last: dict[tuple[object, ...], Ledger] = {}
    for ledger in every:
        if ledger.ideal is not None and ledger.elapsed.loss is not None:
            last[(*results.key(ledger.row, results.series_names), ledger.row["source"])] = ledger
    return list(last.values())
