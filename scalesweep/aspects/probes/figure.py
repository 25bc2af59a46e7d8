"""What probes measured by size: rates over values, and allreduce times with the network's fit."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from scalesweep.analysis.network_fit import predicted_seconds
from scalesweep.aspects.probes.ceilings import is_probe, networks
from scalesweep.aspects.probes.table import SweepRow
from scalesweep.core.formatting import counted, finite, number, scaled_unit, shorten, size_words
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.figures.style import (
    CUT,
    FAINT,
    MAX_TICKS,
    WIDE,
    Drawing,
    caption,
    cut_words,
    evenly,
    heading,
    labels_of,
    left_out_words,
    legend_columns,
    log_axis,
    look,
    parameter_axis,
    tick,
)

MAX_SERIES = 8
_STEPS = 60  # of a fitted line


def sweep_figures(results: ExperimentResults) -> list[Drawing]:
    """The rate of every point over the values that its runs go through."""
    if not is_probe(results):
        return []
    groups: dict[Key, list[SweepRow]] = {}
    for row in results.of(SweepRow):
        groups.setdefault(results.key(row.place, row.place), []).append(row)
    shown: list[list[SweepRow]] = evenly(list(groups.values()), MAX_SERIES)
    return [_rates(results, shown, len(groups) - len(shown))]


def _rates(results: ExperimentResults, groups: Sequence[list[SweepRow]], left_out: int) -> Drawing:
    """The rates of sweeps over what they vary, a line each, with intervals and the best repeat."""
    first = groups[0][0]
    factor, unit = scaled_unit(first.unit, max(row.best_rate for g in groups for row in g))
    what = " or ".join(dict.fromkeys(group[0].by for group in groups))
    by = what.capitalize() + (f" [{first.value_unit}]" if first.value_unit else "")
    head = f"{results.name}: rate by {what}{results.mark}"
    points = [group[0].place for group in groups]
    labels, named = labels_of(results, points, 40)
    figure = Figure(figsize=(WIDE, 4.2))
    heading(figure, head, named)
    ax = figure.subplots()
    values = list(dict.fromkeys(row.value for group in groups for row in group))
    if all(finite(value) for value in values):
        values.sort()
    places = dict(zip(values, parameter_axis(ax, values, by), strict=True))
    for index, (group, label) in enumerate(zip(groups, labels, strict=True)):
        xs = [places[row.value] for row in group]
        means = np.array([row.rate.value for row in group]) * factor
        style = look(index)
        if isinstance(values[0], str):
            style |= {"linestyle": ""}
        ax.plot(xs, means, label=shorten(label, 40), **style)
        best = np.array([row.best_rate for row in group]) * factor
        ax.plot(xs, best, color=style["color"], marker="_", markersize=9, linestyle="")
        spans = [(x, span) for x, row in zip(xs, group, strict=True) if (span := _span(row))]
        ax.vlines(
            [x for x, _ in spans],
            [low * factor for _, (low, _) in spans],
            [high * factor for _, (_, high) in spans],
            color=style["color"], alpha=0.45, linewidth=3,
        )  # fmt: skip
    every = [row for group in groups for row in group]
    highest = CUT * max(row.best_rate for row in every) * factor
    bars = [(span[0] * factor, span[1] * factor) for row in every if (span := _span(row))]
    positive = [row.rate.value * factor for g in groups for row in g if row.rate.value > 0]
    if positive and max(positive) > 30 * min(positive):
        log_axis(ax, positive)
    else:
        ax.set_ylim(0, highest)
        ax.yaxis.set_major_formatter(FuncFormatter(tick))
    ax.set_ylabel(f"Rate [{unit}]")
    if results.axes:
        figure.legend(loc="outside lower left", ncols=legend_columns(figure, labels))
    text = caption(
        results, points, [],
        "Points: mean over runs of the median repeat, with the 95 % interval over runs as a bar; "
        "dashes: the best repeat, the ceiling. Rates of collectives are bus bandwidths.",
        cut_words(bars, highest),
        left_out_words(left_out),
    )  # fmt: skip
    top = max(every, key=lambda row: row.best_rate)
    best_words = f"{number(top.best_rate * factor)} {unit} at {top.value}"
    alt = f"{head}: {counted(len(groups), 'series', 'series')}; the best is {best_words}."
    return Drawing("sweep", head, text, alt, figure)


def _span(row: SweepRow) -> tuple[float, float] | None:
    """The interval of a rate; None without one."""
    low, high = row.rate.low, row.rate.high
    return None if low is None or high is None else (low, high)


def network_figures(results: ExperimentResults) -> list[Drawing]:
    """Times of allreduces over message sizes, with what the best fit of each range gives."""
    fits = [fit for ranges in networks(results) for fit in ranges]
    if not fits:
        return []
    axes = [name for name in results.axes if name != "ranks"]
    groups: dict[Key, list[SweepRow]] = {}
    for row in results.of(SweepRow):
        key = results.key(row.place, (*axes, "source"))
        if any(key == results.key(fit.place, (*axes, "source")) for fit in fits):
            groups.setdefault((*key, _ranks(results, row)), []).append(row)
    shown = evenly(list(groups.items()), MAX_SERIES)
    head = f"{results.name}: time of an allreduce and the network's fit{results.mark}"
    figure = Figure(figsize=(WIDE, 4.2))
    labels, named = labels_of(results, [rows[0].place for _, rows in shown], 40)
    heading(figure, head, named)
    ax = figure.subplots()
    every: list[float] = []
    for index, ((key, rows), label) in enumerate(zip(shown, labels, strict=True)):
        style = look(index)
        times = [row.seconds.value * 1e6 for row in rows]
        every += times
        ax.plot([row.amount for row in rows], times, label=label, **style | {"linestyle": ""})
        for fit in fits:
            if results.key(fit.place, (*axes, "source")) == key[:-1]:
                sizes = np.geomspace(fit.low_bytes, fit.high_bytes, _STEPS)
                fitted = predicted_seconds(
                    fit.algorithm, key[-1], sizes, fit.latency.value,
                    fit.bandwidth.value if fit.bandwidth else None,
                )  # fmt: skip
                ax.plot(sizes, fitted * 1e6, color=style["color"], linewidth=1.2)
    for edge in sorted({fit.low_bytes for fit in fits} - {min(fit.low_bytes for fit in fits)}):
        ax.axvline(edge, color=FAINT, linestyle=(0, (2, 2)), linewidth=1)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(LogLocator(base=2, numticks=MAX_TICKS))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_words(size)))
    log_axis(ax, every)
    ax.set_xlabel("Message size")
    ax.set_ylabel("Time [µs]")
    if len(shown) > 1:
        figure.legend(loc="outside lower left", ncols=legend_columns(figure, labels))
    text = caption(
        results, [rows[0].row for _, rows in shown], [],
        "Points: mean over runs of the median repeat. Lines: the fit of the algorithm that "
        "predicts sizes best that are left out; dotted: where a range of sizes begins.",
        left_out_words(len(groups) - len(shown)),
    )  # fmt: skip
    alt = f"{head}: {counted(len(shown), 'series', 'series')}, {counted(len(fits), 'range')}."
    return [Drawing("network", head, text, alt, figure)]


def _ranks(results: ExperimentResults, row: SweepRow) -> int:
    return int(row.point["ranks"] if "ranks" in results.axes else results.entry["fixed"]["ranks"])


FIGURES = (sweep_figures, network_figures)
