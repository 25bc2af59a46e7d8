"""Where the time and the energy of a run go: stacked bars by phase."""

from collections.abc import Mapping, Sequence

from scalesweep.aspects.phases.table import Phase, in_order
from scalesweep.core.formatting import shorten
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.stacked import Bar, point_bars
from scalesweep.figures.style import Drawing
from scalesweep.findings.base import point_key

# Colours after Okabe and Ito; phases that share one differ in hatch and are apart in a run.
LOOKS: Mapping[str, tuple[str, str]] = {
    "import": ("#9aa1ab", ""), "init": ("#d5d9de", ""), "data_staging": ("#56B4E9", "////"),
    "data_loading": ("#56B4E9", ""), "preprocessing": ("#F0E442", ""), "build": ("#CC79A7", ""),
    "broadcast": ("#CC79A7", "////"), "warmup": ("#0072B2", "////"), "training": ("#0072B2", ""),
    "timed": ("#0072B2", ""), "validation": ("#E69F00", ""), "evaluation": ("#D55E00", ""),
    "teardown": ("#9aa1ab", "////"),
}  # fmt: skip
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
    notes = "Means over repeats; phases of rank 0."
    return _bars(results, "phases-time", "time", "seconds", "s", notes)


def phase_energy_figures(results: ExperimentResults) -> list[Drawing]:
    """Joules by phase, where energy was measured."""
    notes = "Means over repeats, all hosts; phases of rank 0."
    return _bars(results, "energy-phases", "energy", "energy", "J", notes)


def _bars(
    results: ExperimentResults, name: str, what: str, column: str, unit: str, notes: str
) -> list[Drawing]:
    bars: dict[object, Bar] = {}
    for row in results.of(Phase):
        value = getattr(row, column)
        if value is not None and value.value > 0:
            bar = bars.setdefault(point_key(results, row.row), Bar(row.row, {}))
            bar.parts[row.phase] = value.value
    looks = looks_of(in_order({part for bar in bars.values() for part in bar.parts}))
    words = {part: shorten(part.replace("_", " "), 24) for part in looks}
    title, axis = f"{what} by phase", what.capitalize()
    return point_bars(
        results, name, title, axis, unit, [*bars.values()], looks, words,
        [notes, "The number at the end of a bar is the sum of its phases."],
    )  # fmt: skip


FIGURES = (phase_figures, phase_energy_figures)
