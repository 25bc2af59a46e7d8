"""The control point through a campaign: every run of it, by start, host and session."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scalesweep.analysis.drift import Trend, clearer_jump, trend
from scalesweep.core.formatting import PHASES, counted, number, shorten
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.timeline import Timeline, moment, timeline
from scalesweep.figures.style import (
    COLOURS,
    FAINT,
    HOLE,
    INK,
    MARKERS,
    ORANGE,
    WIDE,
    Drawing,
    caption,
    heading,
    tick,
)

MAX_HOSTS = len(COLOURS) - 1  # each with a colour; orange is the drift's
TIME_WIDTH = 0.2  # of the axis, that a session's time takes


def control_figures(results: ExperimentResults) -> list[Drawing]:
    """One figure of the control point's main metric; none for other experiments."""
    main, line = results.main, timeline(results)
    return [_drawn(results, main, line)] if results.control and main and line.times else []


def _drawn(results: ExperimentResults, main: Measure, line: Timeline) -> Drawing:
    """The values of the control point in order of start, with their mean, drift and sessions."""
    phase = main.steady_phase
    head = f"{results.title}: {main.label[:1].lower()}{main.label[1:]}, {PHASES[phase]}"
    figure = Figure(figsize=(WIDE, 3.6))
    heading(figure, head)
    ax = figure.subplots()
    values = [value * main.factor for value in line.values]
    handles = _runs(ax, line, values)
    handles += _mean(ax, results, main, phase)
    handles += _drift(ax, main, line)
    _sessions(ax, line)
    ax.set_xlabel("Control run, in order of start")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(0.5, len(values) + 0.5)
    ax.set_ylabel(main.axis_label)
    ax.yaxis.set_major_formatter(FuncFormatter(tick))
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.02))
    text = caption(
        results, results.points, [phase],
        "The same point, measured throughout the campaign. Band: 95 % interval of its mean.",
        "Dotted: a new session begins." if len(line.sessions) > 1 else "",
    )  # fmt: skip
    first, last = moment(line.times[0]), moment(line.times[-1])
    alt = (
        f"{head}: {counted(len(values), 'run')} from {first} to {last}; values from "
        f"{number(min(values))} to {number(max(values))} {main.unit}."
    )
    return Drawing("control", head, text, alt, figure)


def _runs(ax: Axes, line: Timeline, values: Sequence[float]) -> list[Any]:
    """Every run, marked by its hosts where they differ; legend entries."""
    colours = [colour for colour in COLOURS if colour != ORANGE]
    shown = line.hosts[:MAX_HOSTS] if len(line.hosts) > 1 else []
    looks = {name: (colours[i], MARKERS[i]) for i, name in enumerate(shown)}
    rest = "other hosts" if shown else "run"
    looks[rest] = (FAINT, MARKERS[-1]) if shown else (colours[0], MARKERS[0])
    names = [str(row.get("hosts")) for row in line.rows]
    handles = []
    for name, (colour, marker) in looks.items():
        places = [i for i, host in enumerate(names) if (host if host in shown else rest) == name]
        if not places:
            continue
        style: dict[str, Any] = {
            "color": colour, "marker": marker, "linestyle": "none", "label": shorten(name, 30),
            "markeredgecolor": "white", "markeredgewidth": 0.5,
        }  # fmt: skip
        ax.plot([i + 1 for i in places], [values[i] for i in places], zorder=3, **style)
        handles.append(Line2D([], [], **style))
    return handles


def _mean(ax: Axes, results: ExperimentResults, main: Measure, phase: str) -> list[Any]:
    """Mean of the measured runs and its interval; legend entries."""
    row = next((row for row in results.points if row["source"] == "measured"), {})
    mean, low, high = (main.value(row, stat, phase) for stat in ("mean", "low", "high"))
    if mean is None:
        return []
    ax.axhline(mean, color=FAINT, linewidth=1.2, zorder=1)
    if low is not None and high is not None:
        ax.axhspan(low, high, color=FAINT, alpha=0.16, linewidth=0, zorder=0)
    return [Line2D([], [], color=FAINT, linewidth=1.2, label="mean")]


def _drift(ax: Axes, main: Measure, line: Timeline) -> list[Any]:
    """The drift that the findings report, as a line; legend entries."""
    steady = trend(line.times, line.logs)
    sudden = None if steady is None else clearer_jump(line.logs, steady, line.sessions)
    if sudden is not None:
        parts = [line.logs[: sudden.place], line.logs[sudden.place :]]
        logs = [sum(part) / len(part) for part in parts for _ in part]
        label = "means before and after"
    elif steady is not None and steady.clear:
        logs = _fitted(steady, line)
        label = "trend in time"
    else:
        return []
    ys = [math.exp(value) * main.factor for value in logs]
    style: dict[str, Any] = {"color": ORANGE, "linestyle": (0, (5, 1.5)), "linewidth": 1.8}
    xs = range(1, len(ys) + 1)
    ax.plot(xs, ys, drawstyle="steps-mid" if sudden else "default", zorder=4, **style)
    return [Line2D([], [], label=label, **style)]


def _fitted(steady: Trend, line: Timeline) -> list[float]:
    """The trend's logarithms at the runs' start times."""
    middle = sum(line.times) / len(line.times)
    level = sum(line.logs) / len(line.logs)
    return [level + steady.change * (time - middle) / steady.span_s for time in line.times]


def _sessions(ax: Axes, line: Timeline) -> None:
    """A line where a session begins, with its time where there is room for it."""
    width = len(line.times) * TIME_WIDTH
    free = 0.0
    for place in line.sessions:
        if place:
            ax.axvline(place + 0.5, color=HOLE, linewidth=1, linestyle=(0, (1, 2)), zorder=1)
        late = place + width > len(line.times)
        first = place - width if late else place
        if first >= free:
            ax.text(
                place + 0.5, 1.0, moment(line.times[place]), transform=ax.get_xaxis_transform(),
                ha="right" if late else "left", va="bottom", fontsize=7.5, color=INK,
            )  # fmt: skip
            free = first + width
