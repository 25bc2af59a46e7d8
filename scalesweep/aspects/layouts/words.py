"""Numbers of layouts as sentences and tables have them."""

from collections.abc import Mapping, Sequence

from scalesweep.aspects.layouts.effects import LayoutEffect
from scalesweep.aspects.layouts.table import BestLayout, LayoutPoint
from scalesweep.core.formatting import number, percent, says_nothing, with_interval
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import Estimate, numbers_of

LEAST = 0.0005  # below it a share rounds to 0.0 %


def best_layouts(results: ExperimentResults) -> Mapping[str, list[BestLayout]]:
    """By what is computed the rows of its scales: measured ones where there are any."""
    rows = results.of(BestLayout)
    chosen = _source(results)
    settings: dict[str, list[BestLayout]] = {}
    for row in rows:
        if row.source == chosen:
            settings.setdefault(row.setting, []).append(row)
    return settings


def layouts_that_ran(results: ExperimentResults) -> list[LayoutPoint]:
    """Layouts with a result, of the same source."""
    chosen = _source(results)
    return [row for row in results.of(LayoutPoint) if row.source == chosen]


def effects_of_layouts(results: ExperimentResults) -> list[LayoutEffect]:
    """What single choices change, of the same source."""
    chosen = _source(results)
    return [row for row in results.of(LayoutEffect) if row.source == chosen]


def _source(results: ExperimentResults) -> str | None:
    return "measured" if "measured" in results.sources else next(iter(results.sources), None)


def value_text(results: ExperimentResults, value: Estimate | None, unit: bool = True) -> str:
    """A mean of the main metric with its interval, and its unit unless a heading has it."""
    main = results.main
    if main is None:
        return "–"
    return with_interval(*numbers_of(value, main.factor), main.unit if unit else "")


def measured_text(measure: Measure, value: float | None) -> str:
    """A value of another metric without its unit; a ratio as per cent."""
    if value is None or not measure.unit:
        return percent(value)
    return number(value * measure.factor)


def failed_text(row: BestLayout) -> str:
    """``2 of 5 runs failed`` of the best layout; empty where none did."""
    if not row.runs_failed:
        return ""
    runs = row.runs_failed + row.repeats
    return f"{row.runs_failed:,} of {runs:,} runs failed"


def ahead_text(row: BestLayout) -> str:
    """``3.1 [1.0, 5.2] %``, from repeats that did not choose where there are such."""
    if row.ahead_apart is not None:
        value, low, high = numbers_of(row.ahead_apart)
        known = value is not None and low is not None and high is not None
        if known and says_nothing(value or 1, low or 0, high or 0):
            return f"{percent((value or 1) - 1)} (interval not known)"
        ends = (None, None) if low is None or high is None else (low - 1, high - 1)
        return percent((value or 1) - 1, *ends)
    ahead = None if row.ahead is None else row.ahead - 1
    return "less than 0.1 %" if ahead is not None and 0 < ahead < LEAST else percent(ahead)


def loss_text(row: BestLayout) -> str:
    """What the layout that was carried over loses, as ``ahead_text``."""
    if row.carried_loss_apart is not None:
        return percent(*numbers_of(row.carried_loss_apart))
    loss = row.carried_loss
    return "less than 0.1 %" if loss is not None and 0 < loss < LEAST else percent(loss)


def without_repeats(rows: Sequence[BestLayout]) -> bool:
    """Whether nothing tells how far these margins are noise: no layout was measured twice."""
    return all(row.ahead_apart is None for row in rows)
