"""Layouts of one source, and numbers of them as the page has them."""

from collections.abc import Mapping, Sequence

from scalesweep.aspects.layouts.table import BestLayout, LayoutPoint
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults


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


def lead_note(rows: Sequence[BestLayout]) -> str:
    """What leads are worth."""
    if not any(row.ahead and row.ahead.known for row in rows):
        return "The first layouts have one result each: no lead is confirmed."
    note = "Clear: the best is told from every other layout"
    jobs = ", if imported repeats were jobs of their own" if rows[0].source == "imported" else ""
    return f"{note}{jobs}. Leads are as measured, and the choice of the best raises them."
