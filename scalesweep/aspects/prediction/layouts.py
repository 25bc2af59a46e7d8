"""Rates expected of layouts, kept when they are advised and scored once they are measured.

``layout_predictions.jsonl`` in the results folder has a line for each layout that
``scalesweep advise --layouts`` has worked out, chosen or not, so that the score is not that of the
best looking ones; lines are only ever added.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalesweep.aspects.prediction.forecasts import Kept, add_lines, read_kept
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import finite, plain
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.points import ExperimentData, Point

KEPT_LAYOUTS = "layout_predictions.jsonl"
_TEXTS = ("experiment", "metric", "phase", "unit", "based_on", "made")
_NUMBERS = ("value", "low", "high", "level", "layouts", "largest")
# What makes a prediction the same as an earlier one, with its point and experiment.
_IDENTITY = ("metric", "phase", "based_on", "layouts", "largest")


@dataclass(frozen=True, kw_only=True)
class ScoredLayout(DeclaredRow, table="layout_forecasts"):
    """A layout of which a rate was expected, and that has been measured since."""

    metric: str = column("what was expected")
    phase: str = column("`later` or `run`")
    unit: str = column("the unit of `expected` and `measured`")
    made: str = column("when, UTC")
    layouts: int = column("measured layouts that it was made from", "1")
    largest: int = column("the most ranks of these", "1")
    chosen: bool = column("whether it was advised to try it")
    level: float = column("probability of the interval", "1")
    expected: Estimate = column("the rate that was expected", ends=("low", "high"))
    measured: float = column("mean over repeats")
    error: float = column("measured over expected, less 1", "1")
    hit: bool = column("whether the interval holds it")


@dataclass(frozen=True)
class Made:
    """A rate that is expected of a point, with the ends of its interval of ``level``."""

    experiment: str
    point: Mapping[str, Any]
    metric: str
    phase: str
    unit: str
    based_on: str
    layouts: int
    largest: int
    chosen: bool
    level: float
    value: float
    low: float
    high: float


def read_layouts(path: Path) -> list[Kept]:
    """The expected rates of a file, oldest first; lines that are not whole are left out, and
    said."""
    return read_kept(path, _whole)


def _whole(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and isinstance(content.get("point"), dict)
        and isinstance(content.get("chosen"), bool)
        and all(isinstance(content.get(name), str) for name in _TEXTS)
        and finite(*(content.get(name) for name in _NUMBERS))
    )


def keep_layouts(expected: Iterable[Made], path: Path, now: datetime | None = None) -> int:
    """Add what is expected to the file, where that is not in it yet; returns how many lines.

    Raises UserError if the file cannot be written.
    """
    known = {_identity(kept) for kept in read_layouts(path)}
    made = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    new = []
    for each in expected:
        point = {name: plain(value) for name, value in each.point.items()}
        line = {"made": made, **vars(each), "point": point}
        if finite(each.value, each.low, each.high) and (key := _identity(line)) not in known:
            known.add(key)
            new.append(json.dumps(line))
    add_lines(path, new)
    return len(new)


def _identity(kept: Kept) -> str:
    facts = (kept.get(name) for name in _IDENTITY)
    return canonical_json([kept["experiment"], kept["point"], *facts])


def scored_layouts(data: ExperimentData, kept: Iterable[Kept]) -> list[tuple[Kept, Point]]:
    """Those of an experiment's expected rates whose points are measured, with the point."""
    there: dict[str, list[Point]] = {}
    for point in data.points():
        if point.rows.size:
            whole = parameters_at(data.experiment, point.values)
            there.setdefault(_key(point.source, whole), []).append(point)
    measured = []
    for each in kept:
        same = there.get(_key(each["based_on"], each["point"]), [])
        measure = (each["metric"], each["phase"])
        known = len(same) == 1 and measure in data.measures
        if known and data.repeats(same[0], measure).size:
            measured.append((each, same[0]))
    return measured


def _key(source: str | None, point: Mapping[str, Any]) -> str:
    return canonical_json([source, {name: plain(value) for name, value in point.items()}])


def layout_forecast_rows(data: ExperimentData, kept: Sequence[Kept]) -> Iterator[ScoredLayout]:
    """A row for each layout that has been measured since, oldest first."""
    for known, point in scored_layouts(data, kept):
        measured = float(data.repeats(point, (known["metric"], known["phase"])).mean())
        value, low, high = (float(known[name]) for name in ("value", "low", "high"))
        yield ScoredLayout(
            point=point.values,
            metric=known["metric"],
            phase=known["phase"],
            unit=known["unit"],
            made=known["made"],
            layouts=known["layouts"],
            largest=known["largest"],
            chosen=known["chosen"],
            level=known["level"],
            expected=Estimate(value, low, high),
            measured=measured,
            error=measured / value - 1,
            hit=low <= measured <= high,
        )
