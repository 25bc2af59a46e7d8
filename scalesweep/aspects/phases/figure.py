"""Where the time and the energy of a run go: stacked bars by phase."""

from collections.abc import Iterable

from scalesweep.aspects.phases.table import LOOKS, Phase, in_order
from scalesweep.core.formatting import shorten
from scalesweep.experiment.by_kind import by_kind
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing
from scalesweep.figures.stacked import Bar, point_bars
from scalesweep.figures.theme import Look

_OTHERS = (("#009E73", ""), ("#009E73", "////"), ("#009E73", "----"), ("#ffffff", "xxxx"))


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Colour and hatch by phase, in the order of a run; a phase looks the same in every figure."""
    ordered = in_order(names)
    others = [name for name in ordered if name not in LOOKS]
    return {
        name: LOOKS[name] if name in LOOKS else _OTHERS[others.index(name) % len(_OTHERS)]
        for name in ordered
    }


def phase_figures(results: ExperimentResults) -> list[Drawing]:
    """Seconds by phase; joules by phase are in ``phase_energy_figures``."""
    note = "Means over repeats; phases of rank 0."
    return _bars(results, "phases-time", "time", "seconds", "s", note)


def phase_energy_figures(results: ExperimentResults) -> list[Drawing]:
    """Joules by phase, where energy was measured."""
    note = "Means over repeats, all hosts; phases of rank 0."
    return _bars(results, "energy-phases", "energy", "energy", "J", note)


def _bars(
    results: ExperimentResults, name: str, what: str, column: str, unit: str, note: str
) -> list[Drawing]:
    known = by_kind(results, results.of(Phase), "phase", column)
    positive = (({n: v for n, v in parts.items() if v > 0}, row) for row, parts in known)
    bars = [Bar(row, parts) for parts, row in positive if parts]
    looks = looks_of({part for bar in bars for part in bar.parts})
    words = {part: shorten(part.replace("_", " "), 24) for part in looks}
    title = f"{what} by phase"
    return point_bars(results, name, title, what.capitalize(), unit, bars, looks, words, note)


FIGURES = (phase_figures, phase_energy_figures)
