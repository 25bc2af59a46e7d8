"""The figure of ``scalesweep normal``: a line for each point that is judged."""

from collections.abc import Sequence
from typing import Any, cast

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from scalesweep.core.formatting import shorten
from scalesweep.figures.files import svg_text
from scalesweep.figures.style import BLUE, FAINT, RC, WIDE, evenly, families, heading, tick
from scalesweep.gallery.normal import FEWEST, LENGTH, SCALE, SIZE, Placed

MOST = 30  # lines


def figure_svg(placed: Sequence[Placed]) -> str | None:
    """Points (a mark with its interval) beside the published ones (dots), as SVG; None without
    any."""
    shown = evenly([each for each in placed if each.references and each.rate.tokens], MOST)
    if not shown:
        return None
    with mpl.rc_context(cast(Any, {**RC, "font.family": families()})):
        figure = Figure(figsize=(WIDE, 1.5 + 0.32 * len(shown)), layout="constrained")
        axes = figure.subplots()
        for line, each in enumerate(shown):
            axes.plot(
                each.values, [line] * len(each.values), "o", color=FAINT, ms=5,
                label="published, the best of each study, scale and length" if not line else None,
            )  # fmt: skip
            mine = each.rate.tokens
            assert mine
            if mine.low is not None and mine.high is not None:
                axes.plot([mine.low, mine.high], [line, line], "-", color=BLUE, lw=1.5)
            color = BLUE if each.verdict else "none"
            axes.plot(
                mine.value, line, "D", color=BLUE, markerfacecolor=color, ms=6,
                label="yours" if not line else None,
            )  # fmt: skip
        axes.set_yticks(range(len(shown)), [shorten(each.rate.label, 60) for each in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.set_xlabel("Tokens/s of a rank")
        axes.xaxis.set_major_formatter(FuncFormatter(tick))
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside lower right", ncols=2)
        detail = (
            f"device and type equal; size ± {100 * (SIZE - 1):.0f} %, ranks and tokens of a sample "
            f"up to {max(SCALE, LENGTH):g} times; hollow: fewer than {FEWEST}"
        )
        heading(figure, "Tokens/s beside comparable published ones", detail)
        return svg_text(figure)
