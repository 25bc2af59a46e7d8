"""The ceilings that the probes of an experiment found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.best_rate import AGREEING, BestRate, best_rate, growth
from scalesweep.analysis.metrics import column
from scalesweep.aspects.probes.table import SweepRow
from scalesweep.core.formatting import counted, finite, plain, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults, Key, Row

RUN = "run"  # phase of plain metrics
# An interval whose ends are further apart than this is not of a ceiling.
WIDE = 1.5


@dataclass(frozen=True)
class Ceiling:
    """The best rate of one kind of work, in ``unit``, at the point whose best run is fastest."""

    what: str  # the values of the parameters that say what is done
    how: str  # the point without them: how it was reached
    row: Row  # of the table points: where it was reached
    unit: str
    best: BestRate
    share: float | None  # of it that a median repeat reaches
    grows: str  # towards which sizes the rate still grew where the sizes tried end

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the undisturbed rate; None without one."""
        return self.best.rate.low, self.best.rate.high

    @property
    def open(self) -> str:
        """Why it is not confirmed; empty where it is."""
        runs = len(self.best.disturbed)
        if self.grows:
            return f"it still grows towards {self.grows} sizes"
        if self.best.agreeing < AGREEING:
            agree = counted(self.best.agreeing, "run")
            return f"{agree} of {runs} within 10 % of the best, {AGREEING} needed"
        low, high = self.ends
        if low is None or high is None:
            return "its runs are identical"
        return "its runs differ too much" if high > WIDE * low else ""


def is_probe(results: ExperimentResults) -> bool:
    """Whether the experiment is one of probes, and something is known of it."""
    return not results.control and results.tables.get(SweepRow.TABLE) is not None


def ceilings(results: ExperimentResults) -> list[Ceiling]:
    """The ceilings of an experiment of probes, one for each kind of work and source.

    Kinds differ in parameters that say what is computed rather than how (``workload``). Times, as
    latencies by size, have no ceiling.
    """
    main = results.main
    if main is None or not main.higher or not is_probe(results):
        return []
    kinds = [name for name in results.axes if parameter_of(results.entry, name).get("workload")]
    same = (*results.axes, "source")
    title = column(main.metric, "mean", RUN)
    rates: dict[Key, list[float]] = {}
    for run in results.rows("runs", [*same, title]):
        if finite(run[title]):
            rates.setdefault(results.key(run, same), []).append(run[title] * main.factor)
    best_of: dict[Key, tuple[BestRate, Row]] = {}
    for row in results.points:
        if values := rates.get(results.key(row, same)):
            best, key = best_rate(np.array(values)), (*results.key(row, kinds), row["source"])
            if key not in best_of or best.rate.value > best_of[key][0].rate.value:
                best_of[key] = (best, row)
    return [_ceiling(results, kinds, best, row) for best, row in best_of.values()]


def _ceiling(results: ExperimentResults, kinds: Sequence[str], best: BestRate, row: Row) -> Ceiling:
    """The ceiling that a point shows, with the value of the sweep that reached it."""
    main = results.main
    assert main is not None
    median = results.measures.get(f"{main.metric}_median")
    usual = median.value(row, "mean", RUN) if median else None
    # A list is of what the sweep goes through: the one that counted is named behind it.
    lines = [n for n in results.axes if n not in kinds and not text_of(row[n]).startswith("[")]
    how = [results.describe(row, lines)] if lines else []
    same = (*results.axes, "source")
    swept = [each for each in results.of(SweepRow)
             if results.key(each.place, same) == results.key(row, same)]  # fmt: skip
    if swept:
        top = max(swept, key=lambda each: each.best_rate)
        shown = f"{top.value:,}" if isinstance(top.value, int | float) else top.value
        how.append(f"{top.by} {shown}{f' {top.value_unit}' if top.value_unit else ''}")
    return Ceiling(
        # Of yes or no the name too; null is the framework's default.
        what=", ".join(
            f"{name} {text_of(value)}" if isinstance(value, bool) else text_of(value)
            for name in kinds
            if (value := plain(row[name])) is not None
        ),
        how=", ".join(how),
        row=row,
        unit=main.unit,
        best=best,
        share=usual / median.factor * main.factor / best.rate.value if median and usual else None,
        grows=growth([each.value for each in swept], [each.best_rate for each in swept]),
    )
