"""Where the time of profiled runs goes: shares by named part, stacked, one bar for each point."""

from collections.abc import Sequence

from scalesweep.analysis.profile import OTHER
from scalesweep.core.formatting import counted, percent, shorten
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.stacked import MAX_BARS, rows_by_bar, stacked_bars
from scalesweep.figures.style import (
    Drawing,
    caption,
    evenly,
    labels_of,
    left_out_words,
)

# Colours after Okabe and Ito; beyond them hatches tell parts apart. The rest is grey.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_HATCHES = ("", "////", "....", "xxxx")
_REST = ("#d5d9de", "")


def part_figures(results: ExperimentResults) -> list[Drawing]:
    """Shares of the time of a rank by part; none without profiles."""
    groups = rows_by_bar(results, "parts", "share")
    if not groups:
        return []
    scaled = results.scale in results.axes
    bars = sorted(groups, key=lambda rows: results.scale_of(rows[0]) if scaled else 0)
    chosen = evenly(bars, MAX_BARS)
    looks = _looks(list(dict.fromkeys(str(row["part"]) for rows in chosen for row in rows)))
    head = f"{results.name}: share of time by part{results.mark}"
    figure, ax = stacked_bars(
        head,
        labels_of(results, [rows[0] for rows in chosen], 44),
        [{str(row["part"]): 100 * row["share"] for row in rows} for rows in chosen],
        looks,
        {shorten(name.replace("_", " "), 24): look for name, look in looks.items()},
        (0.0, 100.0),
    )
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel("Share of the time of a rank [%]")
    text = caption(
        results, [rows[0] for rows in groups], [],
        "Means over ranks and repeats; the table has the intervals.",
        f"Parts are named by patterns, the benchmark's own or those by default; {OTHER}: what none "
        "of them takes.",
        left_out_words(len(groups) - len(chosen)),
    )  # fmt: skip
    largest = max((row for rows in chosen for row in rows), key=lambda row: float(row["share"]))
    alt = (
        f"{head}: {counted(len(chosen), 'bar')}. The largest part is {largest['part']} at "
        f"{results.describe(largest)}: {percent(largest['share'])} of its bar."
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


FIGURES = (part_figures,)
