"""Layouts of one source, and numbers of them as the page has them."""

from collections.abc import Mapping, Sequence

from scalesweep.aspects.layouts.table import BestLayout, LayoutPoint
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import numbers_of


def best_layouts(results: ExperimentResults) -> Mapping[str, list[BestLayout]]:
    """By what is computed the rows of its scales: measured ones where there are any."""
    settings: dict[str, list[BestLayout]] = {}
    for row in results.of(BestLayout):
        if row.source == _source(results):
            settings.setdefault(row.setting, []).append(row)
    return settings


def layouts_that_ran(results: ExperimentResults) -> list[LayoutPoint]:
    """Layouts with a result, of the same source."""
    return [row for row in results.of(LayoutPoint) if row.source == _source(results)]


def _source(results: ExperimentResults) -> str | None:
    return "measured" if "measured" in results.sources else next(iter(results.sources), None)


def measured_text(measure: Measure, value: float | None) -> str:
    """A value of another metric without its unit; a ratio as per cent."""
    if value is None or not measure.unit:
        return percent(value)
    return number(value * measure.factor)


def ahead_of(row: BestLayout) -> tuple[float | None, float | None, float | None]:
    """How far the best is ahead of the next, as a share with its interval: from repeats that did
    not choose, where there are such."""
    if row.ahead_apart is None:
        return None if row.ahead is None else row.ahead - 1, None, None
    value, low, high = (None if n is None else n - 1 for n in numbers_of(row.ahead_apart))
    return value, low, high


def loss_of(row: BestLayout) -> tuple[float | None, float | None, float | None]:
    """What the layout that was carried over loses, as ``ahead_of``."""
    if row.carried_loss_apart is None:
        return row.carried_loss, None, None
    return numbers_of(row.carried_loss_apart)


def without_repeats(rows: Sequence[BestLayout]) -> bool:
    """Whether nothing tells how far these margins are noise: no layout was measured twice."""
    return all(row.ahead_apart is None for row in rows)
