"""What an experiment's report says of counts that were not measured."""

from scalesweep.aspects.prediction.table import Prediction
from scalesweep.core.formatting import PHASES, with_interval
from scalesweep.experiment.points_table import Cell, Shown, Table, declared_table, share_text
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import numbers_of


def prediction_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per series, measure and count; None if nothing is predicted."""

    def what(row: Prediction) -> str:
        measure = results.measures.get(row.metric)
        label, unit = (measure.label, measure.unit) if measure else (row.metric, row.unit)
        epochs = f", {PHASES[row.phase]}" if row.phase != "run" else ""
        return f"{label} [{unit}]{epochs}"

    def value(row: Prediction) -> Cell:
        measure = results.measures.get(row.metric)
        factor = measure.factor if measure else 1.0
        text = with_interval(*numbers_of(row.value, factor))
        return Cell(row.refused or text, bool(row.refused))

    columns: list[Shown] = [
        ("What", "metric", what),
        ("Predicted [95 %]", "value", value),
        ("Efficiency [95 %]", "efficiency", lambda row: share_text(row.efficiency)),
        ("Grows with", "law", lambda row: row.law or "–"),
        ("Largest measured", "largest", lambda row: f"{row.largest:,}"),
        ("Forecasts within", "forecasts_within", lambda row: f"{row.forecasts_within} of "
         f"{row.forecasts}" if row.forecasts else "–"),
    ]  # fmt: skip
    return declared_table(results, results.of(Prediction), columns, limit)


NOTE = (
    "Computed, not measured, and in no other table: continued from the measured counts. Forecasts "
    "within: the next measured counts that lay within the 95 % interval made from the smaller ones."
)
SECTION = Section("Predictions", prediction_table, lambda _results: [NOTE])
