"""The predictions of an experiment, read from its table `prediction`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.tables.prediction import prediction_column


@dataclass(frozen=True)
class Predicted:
    """One row: a count of a series and what it would give in one measure."""

    row: Row
    axes: tuple[str, ...]

    def get(self, name: str) -> Any:
        """A value of the row by the table's own name for it."""
        return self.row.get(prediction_column(name, self.axes))

    def number(self, name: str) -> float | None:
        """A number of the row; None if it has none (infinite ones too)."""
        value = self.get(name)
        return float(value) if finite(value) else None

    @property
    def refused(self) -> str:
        """Why there is no number; empty where there is one."""
        return str(self.get("refused") or "")


def predictions(results: ExperimentResults) -> list[Predicted]:
    """All rows, in the order of the table: series by series, measure by measure, by count."""
    axes = tuple(results.axes)
    return [Predicted(row, axes) for row in results.rows("prediction")]


def of_series(
    results: ExperimentResults, series: Series, metric: str, phase: str
) -> list[Predicted]:
    """The rows of one series and measure, by count."""
    first = series.rows[0]
    own = results.key(first, results.series_names)
    predicted = [
        prediction
        for prediction in predictions(results)
        if prediction.get("metric") == metric
        and prediction.get("phase") == phase
        and prediction.get("based_on") == first["source"]
        and results.key(prediction.row, results.series_names) == own
    ]
    if results.entry["scaling"] == "strong" and len(results.series) > 1:
        predicted = [
            prediction
            for prediction in predicted
            if prediction.get("smallest") == results.scale_of(first)
        ]
        predicted = [
            prediction
            for prediction in predicted
            if prediction.get("largest") == results.scale_of(series.rows[-1])
        ]
    return sorted(predicted, key=lambda prediction: results.scale_of(prediction.row))


def known(rows: Iterable[Predicted]) -> list[Predicted]:
    """Those with a number."""
    return [row for row in rows if not row.refused]
