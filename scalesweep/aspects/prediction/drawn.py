"""Predicted counts in a figure of one series: dashed, hollow, with their 95 % bands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes

from scalesweep.analysis.metrics import column
from scalesweep.aspects.prediction.table import known, of_series
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.figures.style import ORANGE
from scalesweep.table.declared import numbers_of

HOLLOW: Mapping[str, Any] = {
    "marker": "^", "linestyle": (0, (2, 2)), "linewidth": 1.2, "markerfacecolor": "white",
    "markersize": 5,
}  # fmt: skip


@dataclass(frozen=True)
class Beyond:
    """What was drawn: counts, rates and efficiencies with the ends of their intervals."""

    counts: list[int] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    efficiencies: list[float] = field(default_factory=list)
    caption: str = ""


def draw_predicted(
    upper: Axes,
    lower: Axes,
    results: ExperimentResults,
    main: Measure,
    series: Series,
    phase: str,
) -> Beyond:
    """Draw the predictions of a series' main metric, joined to its largest measured count."""
    rows = known(of_series(results, series, main.metric, phase))
    if not rows:
        return Beyond()
    last = series.rows[-1]
    counts = [results.scale_of(row.point) for row in rows]
    drawn: list[list[float]] = []
    for ax, estimates, factor, start in (
        (upper, [row.value for row in rows], main.factor, main.value(last, "mean", phase)),
        (
            lower,
            [row.efficiency for row in rows],
            1.0,
            last.get(column(f"{main.stem}_eff", "", phase)),
        ),
    ):
        numbers = [[end or 0.0 for end in numbers_of(item, factor)] for item in estimates]
        values, lows, highs = (list(ends) for ends in zip(*numbers, strict=True))
        after = [i for i, count in enumerate(counts) if count > results.scale_of(last)]
        ax.plot(counts, values, color=ORANGE, **{**HOLLOW, "linestyle": "none"})
        if after and start is not None:
            xs = [results.scale_of(last), *(counts[i] for i in after)]
            ax.plot(xs, [start, *(values[i] for i in after)], color=ORANGE,
                    linestyle=HOLLOW["linestyle"], linewidth=HOLLOW["linewidth"])  # fmt: skip
            ax.fill_between(
                xs, [start, *(lows[i] for i in after)], [start, *(highs[i] for i in after)],
                color=ORANGE, alpha=0.1, linewidth=0,
            )  # fmt: skip
        ax.vlines(counts, lows, highs, color=ORANGE, linewidth=1, alpha=0.6)
        drawn.append([*values, *lows, *highs])
    caption = (
        f"Hollow, dashed: predicted, with 95 % intervals; not to be trusted beyond "
        f"{results.scaled(rows[0].trusted_to or 0)}."
    )
    return Beyond(counts, drawn[0], drawn[1], caption)
