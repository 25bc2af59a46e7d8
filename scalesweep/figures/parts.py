"""Where the time of profiled runs goes: shares by named part, stacked, one bar for each point."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from scalesweep.analysis.profile import OTHER
from scalesweep.core.formatting import counted, finite, percent, shorten
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.phases import MAX_BARS, stacked_bar
from scalesweep.figures.style import (
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    labels_of,
    left_out_words,
    legend_columns,
)

# Colours after Okabe and Ito; beyond them hatches tell parts apart. The rest is grey.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_HATCHES = ("", "////", "....", "xxxx")
_REST = ("#d5d9de", "")


def part_figures(study: ExperimentResults) -> list[Drawing]:
    """Shares of the time of a rank by part; none without profiles."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in study.rows("parts"):
        if finite(row.get("share")):
            groups.setdefault((*study.key(row, study.axes), row["source"]), []).append(row)
    if not groups:
        return []
    bars = sorted(groups.values(), key=lambda rows: study.scale_of(rows[0]))
    some = evenly(bars, MAX_BARS)
    looks = _looks(list(dict.fromkeys(str(row["part"]) for rows in some for row in rows)))
    head = f"{study.name}: share of time by part{study.mark}"
    labels, named = labels_of(study, [rows[0] for rows in some], 44)
    figure = Figure(figsize=(WIDE, 1.05 + 0.34 * len(some) + (0.2 if named else 0)))
    words = {name: shorten(name.replace("_", " "), 24) for name in looks}
    columns = legend_columns(figure, list(words.values()))
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(looks) // columns))
    heading(figure, head, named)
    ax = figure.subplots()
    for place, rows in enumerate(some):
        shares = {str(row["part"]): 100 * row["share"] for row in rows if row["share"] > 0}
        stacked_bar(ax, place, shares, looks, 100.0)
    ax.set_yticks(range(len(some)), labels)
    ax.set_ylim(len(some) - 0.4, -0.6)
    ax.set_xlim(0, 110)
    ax.set_xticks(range(0, 101, 20))
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("Share of the time of a rank [%]")
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", linewidth=0.4, label=words[name])
        for name, (colour, hatch) in looks.items()
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2)
    text = caption(
        study, [rows[0] for rows in groups.values()], [],
        "Means over ranks and repeats; the table has the intervals.",
        f"Parts are named by the benchmark's patterns; {OTHER}: what none of them takes.",
        left_out_words(len(groups) - len(some)),
    )  # fmt: skip
    largest = max((row for rows in some for row in rows), key=lambda row: float(row["share"]))
    alt = (
        f"{head}: {counted(len(some), 'bar')}. The largest part is {largest['part']} at "
        f"{study.describe(largest)}: {percent(largest['share'])} of its bar."
    )
    return [Drawing("parts-share", head, text, alt, figure)]


def _looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and hatch by part."""
    count = len(_COLOURS)
    known = [name for name in names if name != OTHER]
    looks = {
        name: (_COLOURS[place % count], _HATCHES[place // count % len(_HATCHES)])
        for place, name in enumerate(known)
    }
    return looks | ({OTHER: _REST} if OTHER in names else {})
