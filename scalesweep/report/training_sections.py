"""Accuracy, phases and energy of an experiment as the report shows them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from scalesweep.analysis.metrics import column
from scalesweep.aspects.order import SECTIONS
from scalesweep.aspects.registry import parts
from scalesweep.core.formatting import (
    counted,
    finite,
    listed,
    percent,
    text_of,
    with_interval,
)
from scalesweep.core.status import Status
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section
from scalesweep.report.steps_table import NOTE, steps_table
from scalesweep.tables.provenance import EnergyFacts, RunFacts
from scalesweep.tables.training import ENERGY, RESULTS

MAX_REASONS = 3
# Of the metrics that the launcher adds to a program's own.
DEFINITIONS = {
    "energy": "joules of all hosts and counted domains while the program ran",
    "energy_per_sample": "energy in the phases that handle samples / samples handled in them",
    "energy_delay_product": "energy x wall time of the program",
    "mean_power": "energy / the time it was measured over, of all hosts together",
    "peak_power": "highest power over one sampling interval, of all hosts together",
}
_ENERGY = "Energy"
_OF_PHASES = "Seconds of rank 0, means over repeats with 95 % intervals."
_OF_PARTS = (
    "Share of the time of a rank by part of the program, from profiles of other tools; "
    "means over ranks and repeats with 95 % intervals."
)


@dataclass(frozen=True)
class ShownSection:
    """A heading within an experiment: sentences, figures and a table (None: there is none)."""

    title: str
    notes: list[str]
    figures: list[dict[str, Any]]
    table: Table | None


@cache
def _sections() -> Mapping[str, Section]:
    """All sections by title, in their order."""
    listed_ = [*(module.SECTION for module in parts("section")), *_others()]
    places = {title: place for place, title in enumerate(SECTIONS)}
    listed_.sort(key=lambda section: places.get(section.title, len(places)))
    return {section.title: section for section in listed_}


def _others() -> list[Section]:
    """Those that lie in no folder of an aspect."""
    return [
        Section("Steps", ("steps",), steps_table, lambda _: [NOTE]),
        Section("Accuracy", ("accuracy-",), accuracy_table, _accuracy_notes),
        Section("Phases", ("phases-",), phase_table, lambda _: [_OF_PHASES]),
        Section("Parts", ("parts-",), part_table, lambda _: [_OF_PARTS]),
        Section(_ENERGY, ("energy-", "power-"), lambda *_: None, lambda _: []),
    ]


def section_of(figure: str) -> str | None:
    """The section that shows a figure of this name; None if it comes before them."""
    sections = _sections().values()
    return next((section.title for section in sections if figure.startswith(section.figures)), None)


def training_sections(
    results: ExperimentResults,
    facts: Mapping[str, RunFacts],
    figures: Sequence[dict[str, Any]],
    limit: int,
) -> list[ShownSection]:
    """The sections that have anything to show; their tables have at most ``limit`` rows."""
    shown = []
    for title, section in _sections().items():
        drawn = [figure for figure in figures if section_of(figure["name"]) == title]
        table = section.table(results, limit)
        notes = section.notes(results)
        if title == _ENERGY:
            notes += energy_lines(results, facts)
        if drawn or table is not None or (title == _ENERGY and notes):
            shown.append(ShownSection(title, notes, drawn, table))
    return shown


def _accuracy_notes(results: ExperimentResults) -> list[str]:
    notes = ["Means over repeats, in brackets the 95 % interval of the mean."]
    if any(finite(row.get("reached")) for row in results.rows("accuracy")):
        notes.append(
            "Reached: runs that met the target, of all finished runs; the time to target is "
            "their mean."
        )
    return notes


def _measures(results: ExperimentResults) -> list[Measure]:
    """Columns of the accuracy table: of loss and accuracy those of validation, where there are."""
    names = [name for name in (*RESULTS, *ENERGY) if name in results.measures]
    validated = {name.replace("validation_", "") for name in names if "validation_" in name}
    return [results.measures[n] for n in names if n == "final_loss" or n not in validated]


def accuracy_table(results: ExperimentResults, limit: int) -> Table | None:
    """Time, rate, loss, accuracy and energy of every point; None where nothing trains."""
    rows = results.rows("accuracy")
    if not rows:
        return None
    columns: list[Column] = []
    for measure in _measures(results):
        if measure.metric == "time_to_target":
            columns.append(_REACHED)
        name = column(measure.metric, "mean", "run")
        columns.append(Column(measure.axis_label, _cell(measure), name))
    if any("reached" in row for row in rows) and "time_to_target" not in results.measures:
        columns.append(_REACHED)
    return table_of(results, rows, [("", columns)], limit)


def _cell(measure: Measure) -> Callable[[Row], Cell]:
    def make(row: Row) -> Cell:
        value, low, high = (measure.value(row, stat, "run") for stat in ("mean", "low", "high"))
        # A count that is the same in every run (epochs) is shown with all its digits.
        count = finite(value) and low is None and float(value).is_integer()
        text = text_of(value) if count else with_interval(value, low, high)
        known, runs = row.get("energy_runs"), int(row.get("repeats") or 0)
        if measure.metric in ENERGY and finite(known) and 0 < known < runs:
            text += f" ({known:.0f} of {runs} runs)"
        return Cell(text)

    return make


def _reached(row: Row) -> Cell:
    reached, runs = row.get("reached"), int(row.get("repeats") or 0)
    if not finite(reached) or not runs:
        return Cell("–")
    return Cell(f"{reached:.0f}/{runs}", reached < runs)


_REACHED = Column("Reached", _reached, "reached")


def phase_table(results: ExperimentResults, limit: int) -> Table | None:
    """Seconds of every phase of every point; None where no phases are known."""
    return _wide(results, limit, "phase", "seconds", " [s]", with_interval)


def part_table(results: ExperimentResults, limit: int) -> Table | None:
    """Share of every part of every point; None without profiles."""
    return _wide(results, limit, "part", "share", "", percent)


def _wide(
    results: ExperimentResults,
    limit: int,
    kind: str,
    value: str,
    unit: str,
    words: Callable[..., str],
) -> Table | None:
    """The table ``<kind>s`` with a column for each phase or part; None where it is not there."""
    points: dict[tuple[Any, ...], Row] = {}
    for row in results.rows(f"{kind}s"):
        key = (*results.key(row, results.axes), row["source"])
        points.setdefault(key, {**row, "by_name": {}})["by_name"][str(row[kind])] = row
    if not points:
        return None
    rows = list(points.values())
    names = list(dict.fromkeys(name for row in rows for name in row["by_name"]))

    def cell(name: str) -> Callable[[Row], Cell]:
        def make(row: Row) -> Cell:
            held = row["by_name"].get(name, {})
            return Cell(words(*(held.get(key) for key in (value, f"{value}_low", f"{value}_high"))))

        return make

    columns = [Column(f"{name.replace('_', ' ')}{unit}", cell(name)) for name in names]
    return table_of(results, rows, [("", columns)], limit)


def energy_lines(results: ExperimentResults, facts: Mapping[str, RunFacts]) -> list[str]:
    """What is to be said of how energy was measured in an experiment's runs, or why it was not.

    Records without this information are listed where runs train: elsewhere no reader expects it.
    """
    done = [run["run_id"] for run in results.entry["runs"] if run["status"] == Status.DONE]
    runs = [facts[run_id] for run_id in dict.fromkeys(done) if run_id in facts]
    known = [run.energy for run in runs if run.energy is not None]
    measured = [energy for energy in known if energy.joules is not None]
    lines = [_how(measured, len(runs))] if measured else []
    lines += _noted(measured)
    reasons = Counter(e.missing or "no reason recorded" for e in known if e.joules is None)
    silent = len(runs) - len(known)
    if silent and (reasons or measured or results.tables.get("accuracy") is not None):
        reasons["the records hold no energy data"] += silent
    for reason, count in reasons.most_common(MAX_REASONS):
        share = "" if count == len(runs) else f" in {count:,} of {counted(len(runs), 'run')}"
        lines.append(f"Energy: not measured{share}: {reason}.")
    if len(reasons) > MAX_REASONS:
        lines.append(f"{len(reasons) - MAX_REASONS} more reasons are in the records.")
    return lines


def _how(measured: Sequence[EnergyFacts], runs: int) -> str:
    sources = listed(_once(source for energy in measured for source in energy.sources))
    intervals = sorted({energy.interval_s for energy in measured if energy.interval_s})
    every = f", sampled every {' to '.join(text_of(s) for s in _ends(intervals))} s"
    line = f"Energy: measured in {len(measured):,} of {counted(runs, 'run')} with {sources}"
    line += every if intervals else ""
    shares = [
        energy.sampler_cpu_s / (energy.seconds * energy.hosts)
        for energy in measured
        if energy.sampler_cpu_s is not None and energy.seconds and energy.hosts
    ]
    if shares:
        mean = percent(sum(shares) / len(shares)) if max(shares) >= 5e-4 else "less than 0.1 %"
        line += f"; the sampler itself took {mean} of a core on each host"
    return f"{line}."


def _noted(measured: Sequence[EnergyFacts]) -> list[str]:
    notes = _once(note for energy in measured for note in energy.notes)
    return [f"Of the meters: {listed(notes, MAX_REASONS)}."] if notes else []


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _ends(values: Sequence[float]) -> list[float]:
    return [values[0]] if len(values) == 1 else [values[0], values[-1]]
