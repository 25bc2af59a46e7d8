"""The section of the page on layouts: a table of all that ran, and what its columns mean."""

from collections.abc import Callable

from scalesweep.aspects.layouts.table import LayoutPoint
from scalesweep.aspects.layouts.words import best_layouts, layouts_that_ran, measured_text
from scalesweep.core.formatting import as_given, percent
from scalesweep.experiment.points_table import Shown, Table, declared_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section


def layout_table(results: ExperimentResults, limit: int) -> Table | None:
    """Every layout that ran, the best of each scale first; None where this is no such study."""
    main, ran = results.main, layouts_that_ran(results)
    if main is None or not ran:
        return None
    best = next(row for rows in best_layouts(results).values() for row in rows)
    columns: list[Shown] = [
        ("Layout", "layout", lambda row: row.layout),
        (main.axis_label, "value", lambda row: as_given(row.value * main.factor)),
        ("Share of the best", "share", lambda row: percent(row.share)),
    ]
    for metric, name in ((best.utilisation_metric, "utilisation"), (best.memory_metric, "memory")):
        if metric is not None:
            columns.append((results.measures[metric].axis_label, name, _of(results, metric, name)))
    if best.memory_metric is not None:
        columns.append(("On the front", "front", lambda row: _YES.get(row.front, "–")))
    return declared_table(results, ran, columns, limit)


_YES = {True: "yes", False: "no"}


def _of(results: ExperimentResults, metric: str, name: str) -> Callable[[LayoutPoint], str]:
    return lambda row: measured_text(results.measures[metric], getattr(row, name))


def _notes(results: ExperimentResults) -> list[str]:
    rows = [row for of in best_layouts(results).values() for row in of]
    notes = [
        f"{_SCALING[results.entry['scaling']]} Layouts compare at one scale, with what is computed "
        "held. Share of the best: of the best layout of the scale."
    ]
    if any(row.memory_metric for row in rows):
        notes.append("On the front: no other layout of its scale is better with less memory.")
    return notes


_SCALING = {
    "strong": "Strong scaling: the work of all ranks is the same at every scale.",
    "weak": "Weak scaling: the work of a rank is the same at every scale.",
    "model": "The model grows with the ranks.",
    "none": "What is held over the scales is not stated.",
}
SECTION = Section("Layouts", layout_table, _notes)
