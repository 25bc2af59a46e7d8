"""The section of the page on layouts: a table of all that ran, and what its columns mean."""

from typing import Any

from scalesweep.aspects.layouts.study import study_of
from scalesweep.aspects.layouts.table import LayoutPoint
from scalesweep.aspects.layouts.words import (
    best_layouts,
    layouts_that_ran,
    measured_text,
)
from scalesweep.core.formatting import as_given, percent, text_of
from scalesweep.core.joined_experiments import derived_values
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section


def layout_table(results: ExperimentResults, limit: int) -> Table | None:
    """Every layout that ran, the best of each scale first; None where this is no such study."""
    study, main = study_of(results.entry), results.main
    ran = layouts_that_ran(results)
    if study is None or main is None or not ran:
        return None
    shown = [role for role in study.roles if role not in results.columns]
    derived = [
        name
        for name in results.entry.get("derived_parameters", {})
        if name not in (*shown, *results.entry["fixed"])
    ]

    def row_of(row: LayoutPoint) -> Row:
        more: dict[str, Any] = derived_values(results.entry, row.point)
        sizes = study.sizes(row.point)
        return {
            **{name: more.get(name) for name in derived}, **{role: sizes[role] for role in shown},
            **row.row, "share_of_best": row.share, "value": row.value * main.factor,
            "memory": row.memory, "front": None if row.front is None else int(row.front),
            "utilisation": row.utilisation,
        }  # fmt: skip

    columns = [
        Column(name, lambda row, name=name: Cell(text_of(row[name])), name)  # type: ignore[misc]
        for name in (*shown, *derived)
        if name not in results.columns
    ]
    columns += [
        Column(main.axis_label, lambda row: Cell(as_given(row["value"])), "value"),
        Column(
            "Share of the best", lambda row: Cell(percent(row["share_of_best"])), "share_of_best"
        ),
    ]
    best = next(row for rows in best_layouts(results).values() for row in rows)
    for metric, name in ((best.utilisation_metric, "utilisation"), (best.memory_metric, "memory")):
        if metric is not None:
            columns.append(_measured(results.measures[metric], name))
    if best.memory_metric is not None:
        columns.append(
            Column("On the front", lambda row: Cell(_YES.get(row["front"], "–")), "front")
        )
    return table_of(results, [row_of(row) for row in ran], [("", columns)], limit)


_YES = {1: "yes", 0: "no"}


def _measured(measure: Measure, name: str) -> Column:
    return Column(measure.axis_label, lambda row: Cell(measured_text(measure, row[name])), name)


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
