"""Predictions, kept when they are made and scored once their counts are measured.

``predictions.jsonl`` in the results folder has a line for each, and lines are only ever added: for
a point, measure and source one for each number of measured counts that it was made from. The table
`forecasts` has a row for each whose count has been measured since, so that it says how much
predictions are to be trusted on this site.
"""

import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.table_io import read_table, typed_values
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import finite, plain
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.prediction import prediction_column

KEPT = "predictions.jsonl"
_NUMBERS = ("value", "low", "high", "low_50", "high_50")
_FACTS = ("metric", "phase", "unit", "based_on", "points", "smallest", "largest")
# What makes a prediction the same as an earlier one, with its point and experiment.
_IDENTITY = ("metric", "phase", "based_on", "points", "smallest", "largest")

_log = logging.getLogger(__name__)
Kept = Mapping[str, Any]


def read_kept(path: Path) -> list[Kept]:
    """The predictions of a file, oldest first; lines that are not whole are left out, and said."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        _log.warning("%s: cannot be read: %s", path, error.strerror)
        return []
    predictions = []
    for number, line in enumerate(lines, 1):
        try:
            prediction = json.loads(line)
        except (ValueError, RecursionError):
            prediction = None
        if _whole(prediction):
            predictions.append(prediction)
        elif line.strip():
            _log.warning("%s: line %d is no prediction and is left out", path, number)
    return predictions


def _whole(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and isinstance(content.get("point"), dict)
        and all(isinstance(content.get(n), str) for n in ("experiment", "metric", "phase", "made"))
        and finite(*(content.get(name) for name in (*_NUMBERS, "points", "smallest", "largest")))
    )


def keep_predictions(
    experiments: Iterable[PlanExperiment], tables: Path, path: Path, now: datetime | None = None
) -> int:
    """Add the predictions in ``tables`` that are not in the file yet; returns how many.

    Raises UserError if a table is not whole or the file cannot be written.
    """
    there = {_identity(prediction) for prediction in read_kept(path)}
    made = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    new = []
    for experiment in experiments:
        table = tables / experiment["name"] / "prediction.parquet"
        for prediction in _predicted(experiment, table) if table.is_file() else ():
            if (identity := _identity(prediction)) not in there:
                there.add(identity)
                new.append(json.dumps({"made": made, **prediction}))
    if new:
        try:
            # A line that a killed process has cut off is ended, and left out when it is read.
            cut = path.is_file() and not path.read_bytes().endswith(b"\n")
            with path.open("a") as file:
                file.write(("\n" if cut else "") + "\n".join(new) + "\n")
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return len(new)


def _predicted(experiment: PlanExperiment, table: Path) -> Iterable[dict[str, Any]]:
    axes = experiment["axes"]
    for row in read_table(table).to_dict("records"):
        named = {name: row[prediction_column(name, axes)] for name in (*_FACTS, *_NUMBERS)}
        if finite(named["value"]):
            point = {name: plain(row[name]) for name in axes}
            facts = {name: plain(value) for name, value in named.items()}
            yield {"experiment": experiment["name"], "point": point, **facts}


def _identity(prediction: Kept) -> str:
    return canonical_json(
        [
            prediction["experiment"],
            prediction["point"],
            *(prediction.get(name) for name in _IDENTITY),
        ]
    )


def scored(data: ExperimentData, kept: Iterable[Kept]) -> list[tuple[Kept, Point]]:
    """Those of an experiment's kept predictions whose points are measured, with the point."""
    points = [point for point in data.points() if point.rows.size]
    pairs = []
    for prediction in kept:
        wanted = {name: value for name, value in prediction["point"].items() if value is not None}
        same = [
            point
            for point in points
            if point.source == prediction.get("based_on")
            and wanted.get(data.scale) == point.values.get(data.scale)
            and all(plain(point.values.get(name)) == value for name, value in wanted.items())
        ]
        measure = (prediction["metric"], prediction["phase"])
        known = len(same) == 1 and measure in data.measures
        if known and data.repeats(same[0], measure).size:
            pairs.append((prediction, same[0]))
    return pairs


def forecasts_table(data: ExperimentData, kept: Sequence[Kept]) -> pd.DataFrame | None:
    """A row for each kept prediction that has been measured since, oldest first.

    Columns: varying parameters, ``based_on``, ``metric``, ``phase``, ``unit``, ``made`` (when,
    UTC), ``points`` and ``largest`` (what it was made from), ``predicted`` with its bounds ``low``
    and ``high`` (95 %), ``low_50`` and ``high_50``, ``measured`` (mean over repeats), ``error``
    (measured over predicted, less 1), ``hit`` and ``hit_50``: whether the intervals hold it. None
    without any.
    """
    rows = scored(data, kept)
    if not rows:
        return None
    axes = data.axes
    measured = np.array(
        [float(data.repeats(point, (k["metric"], k["phase"])).mean()) for k, point in rows]
    )
    numbers = {name: np.array([float(k.get(name, math.nan)) for k, _ in rows]) for name in _NUMBERS}
    named: dict[str, Any] = {
        name: typed_values([k.get(name) for k, _ in rows])
        for name in ("based_on", "metric", "phase", "unit", "made", "points", "largest")
    }
    named |= {"predicted": numbers["value"], **{n: numbers[n] for n in _NUMBERS[1:]}}
    named |= {
        "measured": measured,
        "error": measured / numbers["value"] - 1,
        "hit": (numbers["low"] <= measured) & (measured <= numbers["high"]),
        "hit_50": (numbers["low_50"] <= measured) & (measured <= numbers["high_50"]),
    }
    frame = pd.DataFrame(
        {name: typed_values([point.values[name] for _, point in rows]) for name in axes}
        | {prediction_column(name, axes): values for name, values in named.items()}
    )
    frame.attrs["units"] = {}
    return frame
