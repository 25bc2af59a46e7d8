"""Predictions, kept when they are made and scored once their counts are measured.

``predictions.jsonl`` in the results folder has a line for each, and lines are only ever added: for
a point, measure and source one for each number of measured counts that it was made from. The table
``forecasts`` has a row for each whose count has been measured since, so that it says how much
predictions are to be trusted on this site.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalesweep.analysis.table_io import read_table
from scalesweep.aspects.prediction.table import Prediction
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import finite, plain
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.points import ExperimentData, Point

KEPT = "predictions.jsonl"
_NUMBERS = ("value", "low", "high", "low_50", "high_50")
_FACTS = ("metric", "phase", "unit", "based_on", "points", "smallest", "largest")
# What makes a prediction the same as an earlier one, with its point and experiment.
_IDENTITY = ("metric", "phase", "based_on", "points", "smallest", "largest")

_log = logging.getLogger(__name__)
Kept = Mapping[str, Any]


def _whole(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and isinstance(content.get("point"), dict)
        and all(isinstance(content.get(n), str) for n in ("experiment", "metric", "phase", "made"))
        and finite(*(content.get(name) for name in (*_NUMBERS, "points", "smallest", "largest")))
    )


def read_kept(path: Path, whole: Callable[[Any], bool] = _whole) -> list[Kept]:
    """The predictions of a file, oldest first; lines that are not ``whole`` are left out, and
    said."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        _log.warning("%s: cannot be read: %s", path, error.strerror)
        return []
    kept = []
    for number, line in enumerate(lines, 1):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            content = None
        if whole(content):
            kept.append(content)
        elif line.strip():
            _log.warning("%s: line %d is no prediction and is left out", path, number)
    return kept


def keep_predictions(
    experiments: Iterable[PlanExperiment], tables: Path, path: Path, now: datetime | None = None
) -> int:
    """Add the predictions in ``tables`` that are not in the file yet; returns how many.

    Raises UserError if a table is not whole or the file cannot be written.
    """
    known = {_identity(kept) for kept in read_kept(path)}
    made = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    new = []
    for experiment in experiments:
        table = tables / experiment["name"] / "prediction.parquet"
        for prediction in _predicted(experiment, table) if table.is_file() else ():
            if (identity := _identity(prediction)) not in known:
                known.add(identity)
                new.append(json.dumps({"made": made, **prediction}))
    add_lines(path, new)
    return len(new)


def add_lines(path: Path, new: Sequence[str]) -> None:
    """Add lines to a file of kept predictions. Raises UserError if it cannot be written."""
    if not new:
        return
    try:
        # A line that a killed process has cut off is ended, and left out when it is read.
        cut = path.is_file() and not path.read_bytes().endswith(b"\n")
        with path.open("a") as file:
            file.write(("\n" if cut else "") + "\n".join(new) + "\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def _predicted(experiment: PlanExperiment, table: Path) -> Iterable[dict[str, Any]]:
    rows = ExperimentResults(experiment, {Prediction.TABLE: read_table(table)}).of(Prediction)
    for row in rows:
        if row.value is not None and finite(row.value.value):
            cells = row.cells
            facts = {name: plain(cells[name]) for name in (*_FACTS, *_NUMBERS)}
            yield {"experiment": experiment["name"], "point": {**row.point}, **facts}


def _identity(kept: Kept) -> str:
    facts = (kept.get(name) for name in _IDENTITY)
    return canonical_json([kept["experiment"], kept["point"], *facts])


def scored(data: ExperimentData, kept: Iterable[Kept]) -> list[tuple[Kept, Point]]:
    """Those of an experiment's kept predictions whose points are measured, with the point."""
    points = [point for point in data.points() if point.rows.size]
    measured = []
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
            measured.append((prediction, same[0]))
    return measured


@dataclass(frozen=True, kw_only=True)
class Scored(DeclaredRow, table="forecasts"):
    """A prediction that was kept and whose point has been measured since."""

    based_on: str | None = column("the source of the points that it was made from")
    metric: str = column("what was predicted")
    phase: str = column("`init`, `later` or `run`")
    unit: str | None = column("the unit of `predicted` and `measured`")
    made: str = column("when, UTC")
    points: int = column("measured counts that it was made from", "1")
    largest: int = column("the largest of them", "1")
    predicted: Estimate = column("the rate that was predicted", ends=("low", "high"))
    low_50: float = column("lower end of its 50 % interval")
    high_50: float = column("upper end of its 50 % interval")
    measured: float = column("mean over repeats")
    error: float = column("measured over predicted, less 1", "1")
    hit: bool = column("whether the 95 % interval holds it")
    hit_50: bool = column("whether the 50 % interval holds it")


def forecast_rows(data: ExperimentData, kept: Sequence[Kept]) -> Iterator[Scored]:
    """A row for each kept prediction that has been measured since, oldest first."""
    for known, point in scored(data, kept):
        measured = float(data.repeats(point, (known["metric"], known["phase"])).mean())
        value, low, high, low_50, high_50 = (float(known[name]) for name in _NUMBERS)
        yield Scored(
            point=point.values,
            based_on=known.get("based_on"),
            metric=known["metric"],
            phase=known["phase"],
            unit=known.get("unit"),
            made=known["made"],
            points=known["points"],
            largest=known["largest"],
            predicted=Estimate(value, low, high),
            low_50=low_50,
            high_50=high_50,
            measured=measured,
            error=measured / value - 1,
            hit=low <= measured <= high,
            hit_50=low_50 <= measured <= high_50,
        )
