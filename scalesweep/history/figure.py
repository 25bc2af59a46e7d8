"""A point over its sessions, relative to its baseline: repeats, levels, spikes, what changed."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from scalesweep.analysis.stats import t_quantile
from scalesweep.analysis.verdicts import CONFOUNDED, IMPROVEMENT, REGRESSION, TREND
from scalesweep.core.formatting import PHASES, counted, listed, number, shorten
from scalesweep.figures.files import svg_text
from scalesweep.figures.style import BLUE, FAINT, INK, ORANGE, PINK, RC, WIDE, Drawing, heading
from scalesweep.figures.svg import tidy_svg
from scalesweep.history.changes import changed_facts
from scalesweep.history.judged import Judged
from scalesweep.history.session_facts import MOST_SESSIONS

_MOST_TICKS = 14
_COLOURS = {REGRESSION: ORANGE, TREND: ORANGE, CONFOUNDED: PINK, IMPROVEMENT: BLUE}


def draw_series(series: Judged, name: str) -> tuple[Drawing, str]:
    """The drawing of a series that has levels, and its SVG."""
    with mpl.rc_context(cast(Any, RC)):
        drawing = _draw(series, name)
        svg = svg_text(drawing.figure)
    return drawing, tidy_svg(svg, f"{name}-", drawing.alt)


def _draw(series: Judged, name: str) -> Drawing:
    """The figure of a point over its newest sessions: repeats, levels, spikes and the verdict, all
    relative to the base of the verdict."""
    shown = series.shown
    assert shown is not None
    first = max(0, len(series.sessions) - MOST_SESSIONS)
    places = range(first, len(series.sessions))
    base = shown.mean(series.verdict.base or [*places][:1])
    figure = Figure(figsize=(WIDE, 3.1))
    head = f"{series.metric}, {PHASES.get(series.phase, series.phase)}: "
    head += f"{series.benchmark}, {series.point}"
    heading(
        figure,
        shorten(head, 90),
        f"{series.site}, {series.device.upper()}, {series.scaling} scaling",
    )
    ax = figure.subplots()
    for place in places:
        values = np.exp(np.log(series.values[place]) - base)
        ax.plot(np.full(values.size, place), values, ".", color=FAINT, markersize=3, zorder=1)
    steady = [place for place in places if not shown.spikes[place]]
    spikes = [place for place in places if shown.spikes[place]]
    ax.plot(steady, np.exp(shown.centres[steady] - base), "o", color=BLUE, markersize=4, zorder=3)
    ax.plot(spikes, np.exp(shown.centres[spikes] - base), "x", color=ORANGE, markersize=6, zorder=3)
    half = t_quantile(shown.degrees) * shown.between if shown.degrees > 0 else 0.0
    for begin, end, level in shown.levels:
        if end <= first:
            continue
        span = (max(begin, first) - 0.4, end - 0.6)
        ax.fill_between(
            span, math.exp(level - base - half), math.exp(level - base + half), color=BLUE,
            alpha=0.12, linewidth=0, zorder=0,
        )  # fmt: skip
        newest = series.verdict.stepped and end == len(series.sessions)
        colour = _COLOURS.get(series.verdict.kind, INK) if newest else INK
        ax.hlines(math.exp(level - base), *span, color=colour, linewidth=1.6, zorder=2)
    ax.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    marks = _mark_changes(ax, series, places)
    _axis(ax, series, places)
    better = "lower" if series.better == "lower" else "higher"
    ax.set_ylabel(f"Relative to the baseline\n({better} is better)")
    handles: list[Any] = [
        Line2D([], [], linestyle="none", marker="o", color=BLUE, markersize=4, label="session"),
        Line2D([], [], linestyle="none", marker=".", color=FAINT, label="repeat"),
        Line2D([], [], color=INK, linewidth=1.6, label="level"),
        Patch(color=BLUE, alpha=0.12, linewidth=0, label="95 % of sessions"),
    ]
    if spikes:
        handles.append(Line2D([], [], linestyle="none", marker="x", color=ORANGE, label="outlier"))
    figure.legend(handles=handles, loc="outside lower right", ncols=len(handles))
    text = f"{head}. Dotted: the baseline, 1.0."
    if first:
        text += f" The newest {MOST_SESSIONS} of {len(series.sessions):,} sessions."
    if marks:
        text += " Marked above: " + "; ".join(f"{mark} {words}" for mark, words in marks) + "."
    levels = ", ".join(number(math.exp(level - base)) for *_, level in shown.levels)
    alt = (
        f"{head}: {counted(len(places), 'session')}, levels {levels} relative to the baseline, "
        f"{counted(len(spikes), 'outlier')}. Verdict: {series.verdict.kind}."
    )
    return Drawing(name, head, text, alt, figure)


def _mark_changes(ax: Axes, series: Judged, places: Sequence[int]) -> list[tuple[str, str]]:
    """Numbered marks where software, settings or machine changed; returns what each is."""
    marks: list[tuple[str, str]] = []
    for before, place in pairwise(places):
        changed = changed_facts([series.sessions[before]], [series.sessions[place]])
        if not changed:
            continue
        ax.axvline(place - 0.5, color=FAINT, linewidth=1, linestyle=(0, (4, 2)), zorder=0)
        if len(marks) < 9:
            mark = str(len(marks) + 1)
            words = [f"{fact} {old} → {new}" for fact, (old, new) in changed.items()]
            marks.append((mark, listed(words, 3)))
            ax.annotate(
                mark, (place - 0.5, 1.0), xycoords=("data", "axes fraction"), fontsize=7,
                ha="center", va="bottom", color=INK, annotation_clip=False,
            )  # fmt: skip
    return marks


def _axis(ax: Axes, series: Judged, places: Sequence[int]) -> None:
    """Sessions at equal distances, labelled with commit or day."""
    stride = max(1, math.ceil(len(places) / _MOST_TICKS))
    ticks = list(reversed(places[::-1][::stride]))
    ax.set_xticks(ticks, [series.sessions[place].name for place in ticks], rotation=35, ha="right")
    ax.tick_params(axis="x", labelsize=7)
    ax.set_xlim(places[0] - 0.7, places[-1] + 0.7)
    ax.grid(axis="x", visible=False)
