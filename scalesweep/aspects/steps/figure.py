"""The steps of runs one after the other: stalls and drift at a glance."""

import json

from matplotlib.figure import Figure

from scalesweep.aspects.steps.table import CurveRow, StepRow
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    BLUE,
    NARROW,
    ORANGE,
    Drawing,
    caption,
    heading,
    points_shown,
    spread_axis,
)
from scalesweep.findings.base import point_key

MAX_FIGURES = 2


def step_figures(results: ExperimentResults) -> list[Drawing]:
    """Step times along the runs of the points with the most stalls."""
    runs: dict[object, list[StepRow]] = {}
    for row in results.of(StepRow):
        if row.rank is None:
            runs.setdefault(point_key(results, row.row), []).append(row)
    chosen = sorted(runs.values(), key=lambda rows: -sum(row.stalls for row in rows) / len(rows))
    return [_drawn(results, rows, place) for place, rows in enumerate(chosen[:MAX_FIGURES])]


def _drawn(results: ExperimentResults, runs: list[StepRow], place: int) -> Drawing:
    """The longest steps along each run of a point, with stalls marked."""
    row = runs[0].row
    where = f", {results.describe(row)}" if results.axes else ""
    head = f"{results.name}: steps along a run{where}{results.mark}"
    figure = Figure(figsize=(NARROW, 3.0))
    heading(figure, head)
    ax = figure.subplots()
    curves = {run.run_id: ([], []) for run in runs}  # type: dict[str, tuple[list[int], list[float]]]
    for point in results.of(CurveRow):
        if point.run_id in curves:
            curves[point.run_id][0].append(point.step)
            curves[point.run_id][1].append(point.max)
    marks: list[tuple[int, float]] = []
    for number_, run in enumerate(runs):
        steps, ms = curves[run.run_id]
        ax.plot(steps, ms, color=BLUE, lw=0.8, alpha=0.75, label="" if number_ else "a run's steps")
        for stall in json.loads(run.stall_steps):
            at = sum(step <= stall for step in steps) - 1
            marks += [(steps[at], ms[at])] if at >= 0 else []
    if marks:
        ax.plot(*zip(*marks, strict=True), "o", color=ORANGE, markersize=4, label="stall")
    spread_axis(ax, [value for _, ms in curves.values() for value in ms])
    ax.set_xlabel("Step")
    ax.set_ylabel("Time of a step [ms]")
    figure.legend(loc="outside lower left", ncols=2)
    text = caption(
        results, [row | {"repeats": len(runs)}], [],
        "A step lasts from one exchange to the next on the ranks' critical path; of many steps a "
        "point is the longest of several.",
    )  # fmt: skip
    longest = max(run.max for run in runs)
    alt = f"{head}: {counted(len(runs), 'run')}, the longest step {number(longest)} ms."
    name = f"steps-{place + 1}" if place else "steps"
    return Drawing(name, head, text, alt, figure, points_shown(results, [row]))


FIGURES = (step_figures,)
