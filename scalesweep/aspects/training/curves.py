"""What training runs learned by epoch: the table `epochs` as figures and findings take it."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import without_attrs
from scalesweep.aspects.training.table import curve_column
from scalesweep.experiment.results import ExperimentResults

# The best measures of a model first: of validation, and accuracy rather than loss.
PREFERRED = (
    *("validation_accuracy", "accuracy", "validation_mae", "mae", "validation_loss", "loss"),
)


def epochs_of(results: ExperimentResults) -> pd.DataFrame:
    """The rows of `epochs` without dummy input; ``place`` numbers their points and sources."""
    frame = results.tables.get("epochs")
    if frame is None:
        return pd.DataFrame({"place": [], "run_id": []})
    rows = without_attrs(frame)
    points: list[Any] = rows.to_dict("records")
    rows = rows[[results.learns(point) for point in points]]
    by_point = rows.groupby([*results.axes, "source"], sort=False, dropna=False)
    return rows.assign(place=by_point.ngroup())


def mean_epochs(epochs: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Means over the repeats by ``place`` and ``epoch``, of the epochs that all repeats had.

    Missing where one of them has no number: a mean over some would be of other runs.
    """
    by_epoch = epochs.groupby(["place", "epoch"])
    runs = epochs.groupby("place")["run_id"].transform("nunique")
    complete = by_epoch["run_id"].transform("size") == runs
    kept = epochs[complete].groupby(["place", "epoch"])[list(columns)]
    return kept.mean().where(kept.count().eq(kept.size(), axis=0)).reset_index()


def accuracy_curve(results: ExperimentResults, epochs: pd.DataFrame) -> str | None:
    """Name of the curve that says how well the models do; None where there is none."""
    titles = {name: curve_column(name, results.axes) for name in PREFERRED}
    there = (n for n, title in titles.items() if title in epochs and epochs[title].notna().any())
    return next(there, None)
