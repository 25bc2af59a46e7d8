"""Predictions, kept when they are made and scored once their counts are measured.

``predictions.jsonl`` in the results folder gets a line for each: for a point, measure and source
one for each number of measured counts that it was made from. The table ``forecasts`` has a row for
each whose count has been measured since.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalesweep.analysis.table_io import read_table
from scalesweep.aspects.prediction.table import Prediction, known
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import plain
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.points import ExperimentData, Point

KEPT = "predictions.jsonl"
_NUMBERS = ("value", "low", "high", "low_90", "high_90")
# What makes a prediction the same as an earlier one, with its point and experiment.
_IDENTITY = ("metric", "phase", "based_on", "points", "smallest", "largest")
_KEYS = frozenset({"experiment", "point", "made", "unit", *_NUMBERS, *_IDENTITY})

_log = logging.getLogger(__name__)
Kept = Mapping[str, Any]


def read_kept(path: Path) -> list[Kept]:
    """The predictions of a file, oldest first; what is no prediction is left out with a warning."""
    kept: list[Kept] = []
    for number, text in enumerate(path.read_text().splitlines() if path.is_file() else (), 1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if isinstance(line, dict) and line.keys() >= _KEYS:
            kept.append(line)
        else:
            _log.warning("%s: line %d is no prediction and is left out", path, number)
    return kept


def keep_predictions(
    experiments: Iterable[PlanExperiment], tables: Path, path: Path, now: datetime | None = None
) -> int:
    """Add the predictions in ``tables`` that are not in the file yet; returns how many.

    Raises UserError if the file cannot be written.
    """
    identities = {_identity(line) for line in read_kept(path)}
    made = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    new = {}
    for experiment in experiments:
        table = tables / experiment["name"] / "prediction.parquet"
        for line in _predicted(experiment, table) if table.is_file() else ():
            if (identity := _identity(line)) not in identities:
                new[identity] = json.dumps({"made": made, **line}) + "\n"
    if new:
        try:
            with path.open("a") as file:
                file.write("".join(new.values()))
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return len(new)


def _predicted(experiment: PlanExperiment, table: Path) -> Iterator[dict[str, Any]]:
    rows = ExperimentResults(experiment, {Prediction.TABLE: read_table(table)}).of(Prediction)
    for row in known(rows):
        facts = {name: plain(row.cells[name]) for name in ("unit", *_IDENTITY, *_NUMBERS)}
        yield {"experiment": experiment["name"], "point": {**row.point}, **facts}


def _identity(line: Kept) -> str:
    return canonical_json([line[name] for name in ("experiment", "point", *_IDENTITY)])


def scored(data: ExperimentData, kept: Iterable[Kept]) -> list[tuple[Kept, Point]]:
    """Those of an experiment's kept predictions whose points are measured, with the point."""
    points = [point for point in data.points() if point.rows.size]
    measured = []
    for line in kept:
        wanted = {name: value for name, value in line["point"].items() if value is not None}
        same = [
            point
            for point in points
            if point.source == line["based_on"]
            and all(plain(point.values.get(name)) == value for name, value in wanted.items())
        ]
        measure = (line["metric"], line["phase"])
        if len(same) == 1 and measure in data.measures and data.repeats(same[0], measure).size:
            measured.append((line, same[0]))
    return measured


@dataclass(frozen=True, kw_only=True)
class Scored(DeclaredRow, table="forecasts"):
    """A prediction that was kept and whose point has been measured since."""

    based_on: str = column("the source of the points that it was made from")
    metric: str = column("what was predicted")
    phase: str = column("`init`, `later` or `run`")
    unit: str = column("the unit of `predicted` and `measured`")
    made: str = column("when, UTC")
    points: int = column("measured counts that it was made from", "1")
    largest: int = column("the largest of them", "1")
    predicted: Estimate = column("the value that was predicted", ends=("low", "high"))
    measured: float = column("mean over repeats")
    error: float = column("measured over predicted, less 1", "1")
    hit: bool = column("whether the 95 % interval holds it")
    hit_90: bool = column("whether the 90 % interval holds it")


def forecast_rows(data: ExperimentData, kept: Sequence[Kept]) -> Iterator[Scored]:
    """A row for each kept prediction that has been measured since, oldest first."""
    for line, point in scored(data, kept):
        measured = float(data.repeats(point, (line["metric"], line["phase"])).mean())
        value, low, high, low_90, high_90 = (float(line[name]) for name in _NUMBERS)
        yield Scored(
            point=point.values,
            **{name: line[name] for name in ("based_on", "metric", "phase", "unit", "made")},
            points=line["points"],
            largest=line["largest"],
            predicted=Estimate(value, low, high),
            measured=measured,
            error=measured / value - 1,
            hit=low <= measured <= high,
            hit_90=low_90 <= measured <= high_90,
        )
