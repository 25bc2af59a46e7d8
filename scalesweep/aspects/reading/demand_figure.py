"""What is read and what training consumes, over the scale."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from scalesweep.aspects.reading.demand import Demand
from scalesweep.aspects.reading.demand_findings import (
    count_of,
    demands,
    series_names,
    series_of,
)
from scalesweep.core.formatting import PHASES, counted, shorten
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    WIDE,
    Drawing,
    caption,
    draw_line,
    heading,
    left_out_words,
    log_axis,
    look,
    scale_axis,
)
from scalesweep.table.declared import Estimate

MAX_TRAININGS = 3


def demand_figures(results: ExperimentResults) -> list[Drawing]:
    """Rates over the scale, of the first series of reading that has several counts."""
    groups = [rows for rows in demands(results).values() if not rows[0].refused and rows[1:]]
    if not groups:
        return []
    first = groups[0][0]
    series = series_of(results, first)
    drawn = [
        rows
        for rows in groups
        if series_of(results, rows[0]) == series and rows[0].source == first.source
    ]
    trainings = list(dict.fromkeys(rows[0].where for rows in drawn))[:MAX_TRAININGS]
    lines: dict[str, list[tuple[int, Estimate]]] = {}
    for rows in drawn:
        _add(lines, results, f"read, {PHASES[rows[0].phase]}", rows, "rate")
    for rows in drawn:
        if rows[0].where in trainings:
            _add(lines, results, f"consumed by {rows[0].where}", rows, "consumed")
    head = f"{results.name}: what is read, and what training consumes{results.mark}"
    figure = Figure(figsize=(WIDE, 3.6))
    heading(figure, head, results.describe(first.row, series_names(results)))
    ax = figure.subplots()
    counts = sorted({count for line in lines.values() for count, _ in line})
    handles: list[Any] = []
    for place, (name, line) in enumerate(lines.items()):
        style = look(place)
        spans = [
            None if e.low is None or e.high is None or e.low <= 0 else (e.low, e.high)
            for _, e in line
        ]
        draw_line(ax, [count for count, _ in line], [e.value for _, e in line], spans, **style)
        handles.append(Line2D([], [], label=shorten(name, 60), **style))
    scale_axis(ax, counts, results.scale)
    ax.set_ylabel("Samples per second")
    log_axis(
        ax,
        [
            value
            for line in lines.values()
            for _, e in line
            for value in (e.low, e.value, e.high)
            if value is not None and value > 0
        ],
    )
    figure.legend(handles=handles, loc="outside lower left", ncols=2, columnspacing=1.2)
    points = [row.row for rows in drawn for row in rows]
    text = caption(
        results, points, [],
        "Where the line of what is read lies below that of what is consumed, training waits for "
        "its input. Bands are 95 % intervals.",
        left_out_words(len({rows[0].where for rows in drawn}) - len(trainings)),
    )  # fmt: skip
    alt = f"{head}: {counted(len(lines), 'line')} over {counted(len(counts), 'count')}."
    return [Drawing("demand", head, text, alt, figure)]


def _add(
    lines: dict[str, list[tuple[int, Estimate]]],
    results: ExperimentResults,
    name: str,
    rows: Sequence[Demand],
    column: str,
) -> None:
    """Add a line, once."""
    lines.setdefault(name, [(count_of(results, row), getattr(row, column)) for row in rows])
