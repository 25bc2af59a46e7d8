"""What the training runs of an experiment learned: curves by epoch, final accuracy, targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.metrics import EPOCH_CURVES
from scalesweep.aspects.training.table import curve_column
from scalesweep.core.formatting import finite
from scalesweep.experiment.learning import learns
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row

# The best measures of a model first: of validation, and accuracy rather than loss.
PREFERRED = (
    "validation_accuracy",
    "accuracy",
    "validation_mae",
    "mae",
    "validation_loss",
    "loss",
)


@dataclass(frozen=True)
class Curves:
    """The runs of one point that share a source: a list of epochs' rows for each repeat."""

    point: Row
    source: str
    repeats: list[list[Row]]

    def mean(self, columns: Sequence[str]) -> list[tuple[float | None, ...]]:
        """Means over the repeats, by epoch, of the epochs that all repeats had.

        None where one of them has no number: a mean over some would be of other runs.
        """
        epochs = min(map(len, self.repeats))
        return [
            tuple(_mean([run[epoch].get(column) for run in self.repeats]) for column in columns)
            for epoch in range(epochs)
        ]


def _mean(values: Sequence[Any]) -> float | None:
    return sum(values) / len(values) if all(finite(value) for value in values) else None


def curves(results: ExperimentResults) -> list[Curves]:
    """The curves of every point, in the order of the table `epochs`; dummy input is left out."""
    by_point: dict[Key, dict[str, list[Row]]] = {}
    for row in results.rows("epochs"):
        if learns(results, row):
            key = (*results.key(row, results.axes), row["source"])
            by_point.setdefault(key, {}).setdefault(row["run_id"], []).append(row)
    result = []
    for runs in by_point.values():
        first = next(iter(runs.values()))[0]
        by_epoch = [sorted(rows, key=lambda row: int(row["epoch"])) for rows in runs.values()]
        result.append(Curves(first, str(first["source"]), by_epoch))
    return result


def column_of(results: ExperimentResults, name: str) -> str:
    """Column of a curve in the table `epochs`."""
    return curve_column(name, results.axes)


def accuracy_curve(results: ExperimentResults, curves_: Sequence[Curves]) -> str | None:
    """Name of the curve that says how well the models do; None where there is none."""
    for name in PREFERRED:
        title = column_of(results, name)
        if any(finite(row.get(title)) for curve in curves_ for run in curve.repeats for row in run):
            return name
    return None


def final_measure(results: ExperimentResults) -> Measure | None:
    """The final accuracy, error or loss of an experiment, as its curves would be chosen."""
    names = [f"final_{name}" for name in PREFERRED]
    names.insert(1, "test_accuracy")
    return next((results.measures[name] for name in names if name in results.measures), None)


def targets(results: ExperimentResults, name: str) -> list[float]:
    """The values of ``name`` at which training was to stop, in the experiment's points."""
    parameter = f"target_{name.removeprefix('validation_')}"
    points = [run["point"] for run in results.entry["runs"]]
    values = {point[parameter] for point in points if finite(point.get(parameter))}
    return sorted(map(float, values))


def label_of(name: str) -> str:
    """A curve's label for an axis."""
    return EPOCH_CURVES[name].label
