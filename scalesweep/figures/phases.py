"""Where the time and the energy of a run go: stacked bars by phase."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from scalesweep.core.formatting import counted, finite, number, percent, scaled_unit, shorten
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.style import (
    FAINT,
    INK,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    labels_of,
    left_out_words,
    legend_columns,
    tick,
)
from scalesweep.tables.training import in_order

MAX_BARS = 24
LABELLED = 0.07  # a part of the longest bar that has room for its number
# Colours after Okabe and Ito; phases that share one differ in hatch and are apart in a run.
LOOKS: Mapping[str, tuple[str, str]] = {
    "import": ("#9aa1ab", ""),
    "init": ("#d5d9de", ""),
    "data_staging": ("#56B4E9", "////"),
    "data_loading": ("#56B4E9", ""),
    "preprocessing": ("#F0E442", ""),
    "build": ("#CC79A7", ""),
    "broadcast": ("#CC79A7", "////"),
    "warmup": ("#0072B2", "////"),
    "training": ("#0072B2", ""),
    "timed": ("#0072B2", ""),
    "validation": ("#E69F00", ""),
    "evaluation": ("#D55E00", ""),
    "teardown": ("#9aa1ab", "////"),
}
_OTHERS = (("#009E73", ""), ("#009E73", "////"), ("#009E73", "...."), ("#ffffff", "xxxx"))


def looks_of(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and hatch by phase; the same phase looks the same in every figure."""
    others = [name for name in names if name not in LOOKS]
    return {
        name: LOOKS[name] if name in LOOKS else _OTHERS[others.index(name) % len(_OTHERS)]
        for name in names
    }


def phase_names(rows: Sequence[Row]) -> list[str]:
    """The phases of table rows, in the order of a run."""
    return in_order(dict.fromkeys(str(row["phase"]) for row in rows))


def phase_figures(study: ExperimentResults) -> list[Drawing]:
    """Seconds by phase; joules by phase are in ``phase_energy_figures``."""
    return _bars(study, "seconds")


def phase_energy_figures(study: ExperimentResults) -> list[Drawing]:
    """Joules by phase, where energy was measured."""
    return _bars(study, "energy")


def _bars(study: ExperimentResults, what: str) -> list[Drawing]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in study.rows("phases"):
        if finite(row.get(what)) and row[what] > 0:
            groups.setdefault((*study.key(row, study.axes), row["source"]), []).append(row)
    if not groups:
        return []
    some = evenly(list(groups.values()), MAX_BARS)
    names = phase_names([row for rows in some for row in rows])
    looks = looks_of(names)
    top = max(sum(row[what] for row in rows) for rows in some)
    factor, unit = scaled_unit("s" if what == "seconds" else "J", top)
    words = "time" if what == "seconds" else "energy"
    head = f"{study.name}: {words} by phase{study.mark}"
    labels, named = labels_of(study, [rows[0] for rows in some], 44)
    figure = Figure(figsize=(WIDE, 1.05 + 0.34 * len(some) + (0.2 if named else 0)))
    words_of = {name: shorten(name.replace("_", " "), 24) for name in names}
    columns = legend_columns(figure, list(words_of.values()))
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(names) // columns))
    heading(figure, head, named)
    ax = figure.subplots()
    for place, rows in enumerate(some):
        stacked_bar(
            ax, place, {str(row["phase"]): row[what] * factor for row in rows}, looks, top * factor
        )
    ax.set_yticks(range(len(some)), labels)
    ax.set_ylim(len(some) - 0.4, -0.6)
    ax.set_xlim(0, top * factor * 1.1)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(f"{words.capitalize()} [{unit}]")
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=FAINT if colour == "#ffffff" else "white",
              linewidth=0.4, label=words_of[name])
        for name, (colour, hatch) in looks.items()
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2)
    every = [row for rows in groups.values() for row in rows]
    first = [rows[0] for rows in groups.values()]
    text = caption(
        study, first, [],
        "Means over repeats; phases of rank 0; the table has the intervals."
        if what == "seconds" else
        "Means over repeats, all hosts; phases of rank 0.",
        "The number at the end of a bar is the sum of its phases.",
        left_out_words(len(groups) - len(some)),
    )  # fmt: skip
    alt = f"{head}: {counted(len(some), 'bar')}. {_largest(study, every, what)}"
    name = "phases-time" if what == "seconds" else "energy-phases"
    return [Drawing(name, head, text, alt, figure)]


def stacked_bar(
    ax: Axes,
    place: int,
    parts: Mapping[str, float],
    looks: Mapping[str, tuple[str, str]],
    top: float,
) -> None:
    """Draw parts next to each other, negative ones to the left of zero, and their sum at the end.

    A part that takes a good share of ``top`` has its number in it.
    """
    left = below = 0.0
    for name, (colour, hatch) in looks.items():
        value = parts.get(name)
        if value is None:
            continue
        begin = left if value >= 0 else below
        ax.barh(
            place, value, left=begin, height=0.68, color=colour, hatch=hatch,
            edgecolor=FAINT if colour == "#ffffff" else "white", linewidth=0.4,
        )  # fmt: skip
        if value >= LABELLED * top and not hatch:
            ax.text(
                begin + value / 2, place, number(value), ha="center", va="center", fontsize=8,
                color=_ink(colour),
            )  # fmt: skip
        left, below = (left + value, below) if value >= 0 else (left, below + value)
    ax.annotate(
        number(left + below), (left, place), xytext=(4, 0), textcoords="offset points", va="center",
        fontsize=8, color=INK,
    )  # fmt: skip


def _ink(colour: str) -> str:
    red, green, blue = to_rgb(colour)
    return "#000000" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "#ffffff"


def _largest(study: ExperimentResults, rows: Sequence[Row], what: str) -> str:
    sums: dict[tuple[Any, ...], float] = {}
    for row in rows:
        key = (*study.key(row, study.axes), row["source"])
        sums[key] = sums.get(key, 0.0) + row[what]
    row = max(rows, key=lambda r: r[what])
    share = row[what] / sums[(*study.key(row, study.axes), row["source"])]
    name = str(row["phase"]).replace("_", " ")
    return f"The largest part is {name} at {study.describe(row)}: {percent(share)} of its bar."
