"""Where the seconds and, where known, the joules of a run go, by phase."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from scalesweep.analysis.stats import mean_of
from scalesweep.core.formatting import shorten, with_interval
from scalesweep.experiment.by_kind import by_kind, table_by_kind
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.figures.drawing import Drawing
from scalesweep.figures.stacked import Bar, point_bars
from scalesweep.figures.theme import Look
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.making import Maker, TableInputs, point_columns

# Phases in the order of a run, others follow: colour (after Okabe and Ito) and hatch. Those that
# share a colour differ in hatch and are apart in a run.
LOOKS: Mapping[str, Look] = {
    "import": ("#9aa1ab", ""), "init": ("#d5d9de", ""), "data_staging": ("#56B4E9", "////"),
    "data_loading": ("#56B4E9", ""), "preprocessing": ("#F0E442", ""), "build": ("#CC79A7", ""),
    "broadcast": ("#CC79A7", "////"), "warmup": ("#0072B2", "////"), "training": ("#0072B2", ""),
    "timed": ("#0072B2", ""), "validation": ("#E69F00", ""), "evaluation": ("#D55E00", ""),
    "teardown": ("#9aa1ab", "////"),
}  # fmt: skip
_OTHERS = (("#009E73", ""), ("#009E73", "////"), ("#009E73", "----"), ("#ffffff", "xxxx"))
_NOTE = "Seconds of rank 0, means over repeats with 95 % intervals."


@dataclass(frozen=True, kw_only=True)
class Phase(PointRow, table="phases"):
    """A phase of a point's runs: of training runs, and of all whose energy is known."""

    phase: str = column("the phase, as the program names it")
    runs: int = column("finished runs that had it", "1")
    seconds: Estimate = column("its time on rank 0, mean over runs", "s")
    share: Estimate | None = column("its share of the run's phases", "1")
    energy_runs: int = column("runs whose energy in it is known", "1")
    energy: Estimate | None = column("its energy, all hosts", "J")


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Colour and hatch by phase, in the order of a run; a phase looks the same in every figure."""
    known = set(names)
    others = dict(zip(sorted(known - LOOKS.keys()), _OTHERS * len(known), strict=False))
    return {name: look for name, look in LOOKS.items() if name in known} | others


def phase_rows(inputs: TableInputs) -> Iterator[Phase]:
    """A row per point and phase; means over repeats."""
    data = inputs.data
    if not data.trains and not data.knows_energy:
        return
    seconds, energy = (
        pd.DataFrame(data.notes(name).values(), index=list(data.notes(name)))
        for name in ("_phases", "_energy")
    )
    shares = seconds.div(seconds.sum(axis=1), axis=0)
    for point in inputs.points:
        for name in looks_of(seconds.columns):
            times, parts, joules = (
                known.loc[known.index.isin(point.rows), name].dropna() if name in known else ()
                for known in (seconds, shares, energy)
            )
            if len(times):
                yield Phase(
                    **point_columns(point), phase=name, runs=len(times),
                    seconds=mean_of(times, data.level),
                    share=mean_of(parts, data.level) if len(parts) else None,
                    energy_runs=len(joules),
                    energy=mean_of(joules, data.level) if len(joules) else None,
                )  # fmt: skip


def phase_table(results: ExperimentResults, limit: int) -> Table | None:
    """Seconds of every phase of every point; None where no phases are known."""
    return table_by_kind(
        results, limit, results.of(Phase), "phase", "seconds", with_interval,
        lambda name: f"{name.replace('_', ' ')} [s]",
    )  # fmt: skip


def phase_figures(results: ExperimentResults) -> list[Drawing]:
    """Stacked bars of seconds by phase, and of joules where energy was measured."""
    joules = _bars(results, "energy-phases", "energy", "energy", "J")
    return _bars(results, "phases-time", "time", "seconds", "s") + joules


def _bars(
    results: ExperimentResults, name: str, what: str, column: str, unit: str
) -> list[Drawing]:
    known = by_kind(results, results.of(Phase), "phase", column)
    positive = (({n: v for n, v in parts.items() if v > 0}, row) for row, parts in known)
    bars = [Bar(row, parts) for parts, row in positive if parts]
    looks = looks_of(part for bar in bars for part in bar.parts)
    words = {part: shorten(part.replace("_", " "), 24) for part in looks}
    title, note = f"{what} by phase", "Means over repeats; phases of rank 0, joules of all hosts."
    return point_bars(results, name, title, what.capitalize(), unit, bars, looks, words, note)


MAKERS = (Maker(Phase, phase_rows),)
FIGURES = (phase_figures,)
SECTION = Section("Phases", phase_table, lambda _results: [_NOTE])
