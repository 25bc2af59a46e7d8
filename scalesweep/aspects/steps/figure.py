"""Figures of steps; here those one after the other along runs: stalls and drift at a glance."""

from collections.abc import Sequence

import pandas as pd

from scalesweep.aspects.steps import breakdown_figure, rank_figure
from scalesweep.aspects.steps.table import CurveRow, StepRow
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

MAX_FIGURES = 2


def step_figures(results: ExperimentResults) -> list[Drawing]:
    """Step times along the runs of the points with the most stalls."""
    runs: dict[object, list[StepRow]] = {}
    for row in results.of(StepRow):
        if row.rank is None:
            runs.setdefault(results.point_key(row.row), []).append(row)
    chosen = sorted(runs.values(), key=lambda rows: -sum(row.stalls for row in rows) / len(rows))
    return [
        drawing
        for place, rows in enumerate(chosen[:MAX_FIGURES])
        for drawing in _figure(results, rows, f"steps-{place + 1}" if place else "steps")
    ]


def _figure(results: ExperimentResults, runs: Sequence[StepRow], name: str) -> list[Drawing]:
    """The longest steps along each run of a point, with stalls marked."""
    row = runs[0].row
    rows = []
    for place, run in enumerate(runs, 1):
        curve = [(at.step, at.max) for at in results.of(CurveRow) if at.run_id == run.run_id]
        series = f"run {place}"
        rows += [{"x": x, "y": y, "series": series, "style": "plain"} for x, y in curve]
        for stall in run.stall_steps:
            marks = [at for at in curve if at[0] <= stall][-1:]
            rows += [{"x": x, "y": y, "series": "stall", "style": "marked"} for x, y in marks]
    where = f", {results.describe(row)}" if results.axes else ""
    panel = Lines(pd.DataFrame(rows), Axis("Step"), Axis("Time of a step [ms]", "log"))
    note = (
        "A step lasts from one exchange to the next on the ranks' critical path; of many steps a "
        "point is the longest of several."
    )
    return drawn(results, name, f"steps along a run{where}", note, [panel] if rows else [])


FIGURES = (*breakdown_figure.FIGURES, *rank_figure.FIGURES, step_figures)
