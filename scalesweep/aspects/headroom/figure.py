"""The share that each point takes of each resource."""

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from scalesweep.aspects.headroom.findings import binding, points_of
from scalesweep.core.formatting import PHASES, counted, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    INK,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    labels_of,
    left_out_words,
    log_ticks,
    look,
    points_shown,
    tick,
)

MAX_ROWS = 24


def headroom_figures(results: ExperimentResults) -> list[Drawing]:
    """Shares by point and resource, with intervals; none without a probe."""
    every = points_of(results)
    points = evenly(every, MAX_ROWS)
    if not points:
        return []
    head = f"{results.name}: share of what probes reach{results.mark}"
    names, shared = labels_of(results, [rows[0].row for rows in points], 44)
    figure = Figure(figsize=(WIDE, 1.3 + 0.27 * len(points)))
    heading(figure, head, shared)
    ax = figure.subplots()
    ax.set_xscale("log")
    resources = list(dict.fromkeys(row.resource for rows in points for row in rows if row.share))
    for place, resource in enumerate(resources):
        style = look(place) | {"linestyle": ""}
        shown = [
            (line, row.share)
            for line, rows in enumerate(points)
            for row in rows
            if row.resource == resource and row.share
        ]
        ax.plot([share.value for _, share in shown], [line for line, _ in shown], label=resource,
                **style)  # fmt: skip
        for line, share in shown:
            if share.low and share.high:
                ax.plot([share.low, share.high], [line, line], color=style["color"], lw=1.3)
    ax.axvline(1.0, color=INK, linestyle="--", lw=1.1)
    low, high = ax.get_xlim()
    ax.set_xticks(log_ticks(low, max(high, 1.5)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(100 * value)))
    ax.set_xlabel("Share of what probes reach [%]")
    phases = {rows[0].phase for rows in points} - {"run"}
    words = [f"{name}, {PHASES[rows[0].phase]}" if len(phases) > 1 else name
             for name, rows in zip(names, points, strict=True)]  # fmt: skip
    ax.set_yticks(range(len(points)), words)
    ax.set_ylim(len(points) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    figure.legend(loc="outside lower left", ncols=6)
    text = caption(
        results, [rows[0].row for rows in points], sorted(phases),
        "Dashed: all that probes reach. Lines: 95 % intervals.",
        left_out_words(len(every) - len(points)),
    )  # fmt: skip
    row, share = binding(points[0])
    alt = (
        f"{head}: {counted(len(points), 'row')}. The largest is {percent(share)} of {row.resource}."
    )
    shown_points = points_shown(results, [rows[0].row for rows in points])
    return [Drawing("headroom", head, text, alt, figure, shown_points)]


FIGURES = (headroom_figures,)
