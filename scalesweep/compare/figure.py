"""Figure of the ratios: a dot and its interval for each point, on a logarithmic axis."""

from typing import Any, cast

import matplotlib as mpl
import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from scalesweep.compare.sides import varying
from scalesweep.core.formatting import PHASES, counted, shorten, text_of
from scalesweep.figures.files import svg_text
from scalesweep.figures.style import BLUE, FAINT, INK, ORANGE, RC, WIDE, heading
from scalesweep.figures.svg import tidy_svg
from scalesweep.judge.change import IMPROVEMENT, INCONCLUSIVE, REGRESSION

MAX_DOTS = 40
_ROOM = 3.0  # times the spread of the ratios: where the axis cuts intervals off
_LOOKS = {IMPROVEMENT: (BLUE, "^"), REGRESSION: (ORANGE, "v"), INCONCLUSIVE: (FAINT, "o")}


def draw_ratios(group: pd.DataFrame) -> list[dict[str, Any]]:
    """The figure of a metric and phase, in a list; an empty one without a ratio.

    Of more than 40 points those whose intervals lie farthest from 1 are drawn, in their order.
    """
    there = group[group["ratio"] > 0]
    if there.empty:
        return []
    far = np.maximum(np.log(there["low"]), -np.log(there["high"])).fillna(-np.inf)
    shown = there.loc[far.nlargest(MAX_DOTS).index.sort_values()]
    first = shown.iloc[0]
    claim = f"{first['experiment']}: {first['quantity'].label.lower()}, {PHASES[first['phase']]}"
    head = f"{claim}, new over base"
    with mpl.rc_context(cast(Any, RC)):
        svg = svg_text(_draw(shown, head))
    caption = f"{head}. Lines: 95 % intervals; arrows: they continue; dotted: no difference."
    if more := len(there) - len(shown):
        caption += f" {counted(more, 'point')} nearer to 1 only in the tables."
    alt = f"{head}: {counted(len(shown), 'point')}. The table of points has the numbers."
    name = f"ratios-{first['experiment']}-{first['metric']}-{first['phase']}"
    prefix = "".join(letter if letter.isalnum() else "-" for letter in name)
    # Written by scalesweep.figures, which serialises every label as XML text.
    return [{"caption": caption, "svg": Markup(tidy_svg(svg, f"{prefix}-", alt))}]


def _draw(shown: pd.DataFrame, head: str) -> Figure:
    figure = Figure(figsize=(WIDE, 1.35 + 0.24 * len(shown)))
    heading(figure, head)
    ax = figure.subplots()
    middle = [*shown["ratio"], 1.0]
    room = max(_ROOM * float(np.ptp(np.log(middle))), 0.05)
    low, high = min(middle) * np.exp(-room), max(middle) * np.exp(room)
    for place, change in enumerate(shown["change"]):
        colour, marker = _LOOKS[change.verdict]
        if np.isfinite(change.low):
            ax.hlines(place, max(change.low, low), min(change.high, high), color=colour)
            for end, cut, arrow in ((low, change.low < low, "<"), (high, change.high > high, ">")):
                if cut:
                    ax.plot(end, place, color=colour, marker=arrow, markersize=4)
        ax.plot(change.ratio, place, marker, color=colour, markersize=6)
    ax.axvline(1.0, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ends = [*middle, *shown["low"].dropna(), *shown["high"].dropna()]
    ax.set_xlim(max(low, min(ends) * 0.99), min(high, max(ends) * 1.01))
    better = "right" if shown.iloc[0]["quantity"].better == "higher" else "left"
    ax.set_xlabel(f"Ratio of the means, new / base (better: {better})")
    pairs = shown["pair"].tolist()
    names = varying(pairs)
    labels = [
        ", ".join(f"{name} {text_of(pair.point.values.get(name))}" for name in names)
        for pair in pairs
    ]
    ax.set_yticks(range(len(shown)), [shorten(label or "the only point", 58) for label in labels])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    return figure
