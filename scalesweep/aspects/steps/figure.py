"""The steps of runs one after the other: quantiles, stalls and drift at a glance."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from scalesweep.aspects.steps.spread import Spread, step_curves, step_spreads
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    NARROW,
    ORANGE,
    Drawing,
    caption,
    heading,
    points_shown,
    spread_axis,
)

MAX_FIGURES = 2


def step_figures(results: ExperimentResults) -> list[Drawing]:
    """Step times along the runs of the points with most ranks, those with stalls first."""
    spreads = {
        (*results.key(spread.row, results.axes), spread.row["source"]): spread
        for spread in step_spreads(results) if spread.rank is None
    }  # fmt: skip
    drawings = []
    for row, runs in step_curves(results):
        spread = spreads.get((*results.key(row, results.axes), row["source"]))
        if spread is not None:
            drawings.append((row, runs, spread))
    drawings.sort(key=lambda each: -(each[2].median("stalls") or 0.0))
    return [
        _drawn(results, *each, "" if number_ == 0 else f"-{number_ + 1}")
        for number_, each in enumerate(drawings[:MAX_FIGURES])
    ]


def _drawn(
    results: ExperimentResults,
    row: Row,
    runs: dict[str, list[tuple[int, float]]],
    spread: Spread,
    ending: str,
) -> Drawing:
    """The times of steps along each run of a point, with stalls marked.

    ``runs``: (step, milliseconds) by run; ``ending`` ends the figure's name.
    """
    where = f", {results.describe(row)}" if results.axes else ""
    head = f"{results.name}: steps along a run{where}{results.mark}"
    figure = Figure(figsize=(NARROW, 3.0))
    heading(figure, head)
    ax = figure.subplots()
    stalls = 0
    for (_, curve), stalled in zip(runs.items(), spread.stalled, strict=False):
        steps, values = zip(*curve, strict=True)
        ax.plot(steps, values, color=BLUE, linewidth=0.8, alpha=0.75)
        long = set(stalled)
        width = steps[1] - steps[0] if len(steps) > 1 else 1
        marks = [at for at in curve if any(at[0] <= step < at[0] + width for step in long)]
        stalls += len(marks)
        if marks:
            ax.plot(*zip(*marks, strict=True), color=ORANGE, marker="o", markersize=4,
                    linestyle="none")  # fmt: skip
    handles = [Line2D([], [], color=BLUE, linewidth=0.8, label="a run's steps")]
    styles = {"p50": (0, (5, 1.5)), "p95": (0, (1, 1))}
    for name, style in styles.items():
        value = spread.median(name)
        if value is not None:
            ax.axhline(value, color=FAINT, linewidth=1, linestyle=style, zorder=0)
            label = f"{'median' if name == 'p50' else '95 % quantile'}, {number(value)} ms"
            handles.append(Line2D([], [], color=FAINT, linewidth=1, linestyle=style, label=label))
    if stalls:
        handles.append(
            Line2D([], [], color=ORANGE, marker="o", markersize=4, linestyle="none", label="stall")
        )
    every = [value for curve in runs.values() for _, value in curve]
    spread_axis(ax, every)
    ax.set_xlabel("Step")
    ax.set_ylabel("Time of a step [ms]")
    figure.legend(handles=handles, loc="outside lower left", ncols=2, columnspacing=1.2)
    long_runs = any(spread.values("steps")) and max(spread.values("steps")) > len(
        next(iter(runs.values()))
    )
    text = caption(
        results, [row | {"repeats": len(spread.runs)}], [],
        "A step lasts from one exchange to the next on the ranks' critical path.",
        "Where runs have more steps than points, a point is the longest of its steps."
        if long_runs else "",
    )  # fmt: skip
    p50, longest = spread.median("p50"), spread.median("max")
    alt = (
        f"{head}: {counted(len(runs), 'run')}, median step {number(p50)} ms, longest "
        f"{number(longest)} ms, {counted(round(spread.median('stalls') or 0), 'stall')} in a run."
    )
    return Drawing(f"steps{ending}", head, text, alt, figure, points_shown(results, [row]))


FIGURES = (step_figures,)
