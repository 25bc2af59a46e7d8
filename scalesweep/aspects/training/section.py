"""The section of the page on time, rate, loss, accuracy and energy of training."""

from collections.abc import Callable

from scalesweep.analysis.metrics import ENERGY, column
from scalesweep.aspects.training.table import RESULTS
from scalesweep.core.formatting import finite, text_of, with_interval
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section


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


SECTION = Section("Accuracy", accuracy_table, _accuracy_notes)
