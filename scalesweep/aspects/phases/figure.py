"""Where the time and the energy of a run go: stacked bars by phase."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.aspects.phases.table import in_order
from scalesweep.core.formatting import counted, percent, scaled_unit, shorten
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.stacked import MAX_BARS, rows_by_bar, stacked_bars
from scalesweep.figures.style import (
    Drawing,
    caption,
    evenly,
    labels_of,
    left_out_words,
)

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


def phase_figures(results: ExperimentResults) -> list[Drawing]:
    """Seconds by phase; joules by phase are in ``phase_energy_figures``."""
    return _bars(results, "seconds")


def phase_energy_figures(results: ExperimentResults) -> list[Drawing]:
    """Joules by phase, where energy was measured."""
    return _bars(results, "energy")


def _bars(results: ExperimentResults, what: str) -> list[Drawing]:
    """A figure of stacked bars, one per point: its phases' ``what`` (``seconds`` or ``energy``);
    none without rows."""
    groups = rows_by_bar(results, "phases", what)
    if not groups:
        return []
    chosen = evenly(groups, MAX_BARS)
    names = phase_names([row for rows in chosen for row in rows])
    looks = looks_of(names)
    top = max(sum(row[what] for row in rows) for rows in chosen)
    factor, unit = scaled_unit("s" if what == "seconds" else "J", top)
    words = "time" if what == "seconds" else "energy"
    head = f"{results.name}: {words} by phase{results.mark}"
    figure, ax = stacked_bars(
        head,
        labels_of(results, [rows[0] for rows in chosen], 44),
        [{str(row["phase"]): row[what] * factor for row in rows} for rows in chosen],
        looks,
        {shorten(name.replace("_", " "), 24): look for name, look in looks.items()},
        (0.0, top * factor),
    )
    ax.set_xlabel(f"{words.capitalize()} [{unit}]")
    every = [row for rows in groups for row in rows]
    first = [rows[0] for rows in groups]
    text = caption(
        results, first, [],
        "Means over repeats; phases of rank 0; the table has the intervals."
        if what == "seconds" else
        "Means over repeats, all hosts; phases of rank 0.",
        "The number at the end of a bar is the sum of its phases.",
        left_out_words(len(groups) - len(chosen)),
    )  # fmt: skip
    alt = f"{head}: {counted(len(chosen), 'bar')}. {_largest(results, every, what)}"
    name = "phases-time" if what == "seconds" else "energy-phases"
    return [Drawing(name, head, text, alt, figure)]


def _largest(results: ExperimentResults, rows: Sequence[Row], what: str) -> str:
    sums: dict[tuple[Any, ...], float] = {}
    for row in rows:
        key = (*results.key(row, results.axes), row["source"])
        sums[key] = sums.get(key, 0.0) + row[what]
    row = max(rows, key=lambda r: r[what])
    share = row[what] / sums[(*results.key(row, results.axes), row["source"])]
    name = str(row["phase"]).replace("_", " ")
    return f"The largest part is {name} at {results.describe(row)}: {percent(share)} of its bar."


FIGURES = (phase_figures, phase_energy_figures)
