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


def predictions(study: ExperimentResults) -> list[Predicted]:
    """All rows, in the order of the table: series by series, measure by measure, by count."""
    axes = tuple(study.axes)
    return [Predicted(row, axes) for row in study.rows("prediction")]


def of_series(study: ExperimentResults, series: Series, metric: str, phase: str) -> list[Predicted]:
    """The rows of one series and measure, by count."""
    first = series.rows[0]
    own = study.key(first, study.series_names)
    found = [
        one
        for one in predictions(study)
        if one.get("metric") == metric
        and one.get("phase") == phase
        and one.get("based_on") == first["source"]
        and study.key(one.row, study.series_names) == own
    ]
    if study.entry["scaling"] == "strong" and len(study.series) > 1:
        found = [one for one in found if one.get("smallest") == study.scale_of(first)]
        found = [one for one in found if one.get("largest") == study.scale_of(series.rows[-1])]
    return sorted(found, key=lambda one: study.scale_of(one.row))


def known(rows: Iterable[Predicted]) -> list[Predicted]:
    """Those with a number."""
    return [one for one in rows if not one.refused]
