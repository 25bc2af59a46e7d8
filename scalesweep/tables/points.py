"""The finished runs of one experiment, point by point: what every table starts from."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import orjson
import pandas as pd

from scalesweep.analysis.blocks import Errors, Layout, layouts, start_seconds
from scalesweep.analysis.factors import fold_axes
from scalesweep.analysis.metrics import (
    ENERGY,
    EPOCH_METRICS,
    EPOCH_PHASES,
    Quantity,
    column,
    derived_names,
    quantities_of,
)
from scalesweep.analysis.stats import (
    CONFIDENCE,
    Estimate,
    LogError,
    Ratio,
    Stated,
    mean_of,
    ratio_of_means,
    stated_mean,
    stated_ratio_error,
)
from scalesweep.analysis.types import Floats, Places
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.joined_experiments import benchmarks_of, parameters_at
from scalesweep.core.plan_format import PlanExperiment, PlanRun
from scalesweep.core.status import Status
from scalesweep.tables.bookkeeping import ROUNDED, STATED
from scalesweep.tables.machine_load import LOAD, undisturbed

# Metric and phase.
Measure = tuple[str, str]


@dataclass(frozen=True)
class Point:
    """One row of `points`: the finished runs of one point that share a source, without those that
    other processes disturbed (``machine_load.undisturbed``)."""

    values: Mapping[str, Any]  # varying parameters
    source: str | None
    rows: Places  # rows of the summary
    planned: int
    samples: int | None  # of an epoch, as measured
    work: int | None = None  # as planned; None where the benchmark declares none
    stale: int = 0  # runs whose records are of something else
    cut: int = 0  # runs that were cut or aborted
    failed: Sequence[str] = ()  # causes of those that failed
    threads_per_core: float | None = None  # of the fullest node; None: not known


def point_id(point: Point) -> str:
    """What tells a point of a source from others, in tables."""
    return digest_of([dict(point.values), point.source], 6)


def _quantities(
    summary: pd.DataFrame, experiment: PlanExperiment
) -> tuple[dict[str, Quantity], dict[str, dict[str, Quantity]]]:
    """What the runs of an experiment may have, by name; and what several benchmarks call the same
    and mean in other units: by name that of each benchmark, which no table puts in one column."""
    own = experiment.get("derived", {})
    by_name: dict[str, dict[str, Quantity]] = {}
    for benchmark in benchmarks_of(experiment):
        quantities = quantities_of(
            summary,
            benchmark,
            experiment.get("kinds"),
            experiment["scaling"],
            experiment["main_metric"],
        )
        # Of another experiment that shares runs.
        foreign = derived_names(summary, benchmark) - own.keys()
        for name, quantity in quantities.items():
            if name not in foreign:
                by_name.setdefault(name, {})[benchmark] = quantity
    alike = {
        name: next(iter(of.values()))
        for name, of in by_name.items()
        if len({(q.unit, q.better, q.scope) for q in of.values()}) == 1
    }
    return alike, {name: of for name, of in by_name.items() if name not in alike}


def place_of(point: Point) -> int:
    """What tells a finished point from others: the row of its first run."""
    return int(point.rows[0])


class ExperimentData:
    """Columns of a summary that belong to one experiment; ``unread`` takes the ids of runs whose
    files cannot be read."""

    def __init__(
        self, summary: pd.DataFrame, experiment: PlanExperiment, unread: list[str] | None = None
    ) -> None:
        self.summary = summary
        self.experiment = experiment
        self.unread = [] if unread is None else unread
        self.axes: list[str] = list(experiment["axes"])
        self.scale: str = experiment["scale"]
        self._notes: dict[str, Mapping[int, Any]] = {}
        self.row_of = self._finished()
        rows = np.array(list(self.row_of.values()), np.intp)
        self.quantities, self.unlike = _quantities(summary, experiment)
        self._floats: dict[str, Floats] = {}
        self._errors: dict[Measure, Mapping[str | None, Errors]] = {}
        self.measures = self._measures(rows)

    def _finished(self) -> dict[str, int]:
        """Row of the summary of every finished run."""
        index = {run_id: row for row, run_id in enumerate(self.summary["run_id"].tolist())}
        finished = {}
        for run in self.experiment["runs"]:
            if run["status"] == Status.DONE:
                if run["run_id"] not in index:
                    raise UserError(
                        f"run {run['run_id']} is done in the plan but missing from the summary; "
                        "summarise the runs of this plan first"
                    )
                finished[run["run_id"]] = index[run["run_id"]]
        return finished

    def targets(self, point: Point) -> list[Any]:
        """Values of the point's parameters ``target_*``, None where nothing is to be reached."""
        parameters = parameters_at(self.experiment, point.values)
        return [value for name, value in parameters.items() if name.startswith("target_")]

    def _measures(self, rows: Places) -> list[Measure]:
        """The metrics these runs have, by phase.

        Those of the epochs come all or none: a column that stays empty says that the number is
        missing. None only where runs finished and left nothing but plain metrics.
        """
        epochs = [(metric, phase) for metric in EPOCH_METRICS for phase in EPOCH_PHASES]
        plain = [
            (name, "run")
            for name in self.quantities
            if np.isfinite(self.numbers(name, "mean", "run")[rows]).any()
        ]
        timed = any(np.isfinite(self.numbers(m, "mean", p)[rows]).any() for m, p in epochs)
        return (epochs if timed or not plain else []) + plain

    @cached_property
    def ranked(self) -> dict[str, list[str]]:
        """The phases of each metric in which these runs have a value, the main metric first: the
        one that the benchmark names, else the total throughput, else the first that it lists."""
        rows, known = list(self.row_of.values()), dict[str, list[str]]()
        for metric, phase in self.measures:
            if np.isfinite(self.numbers(metric, "mean", phase)[rows]).any():
                known.setdefault(metric, []).append(phase)
        entry = self.experiment
        first = [entry["main_metric"], "total_throughput", *entry["metrics"]]
        order = sorted(known, key=lambda name: first.index(name) if name in first else len(first))
        return {name: known[name] for name in order}

    def numbers(self, metric: str, stat: str, phase: str) -> Floats:
        """A column of the summary as floats; all NaN where the summary has none."""
        name = column(metric, stat, phase)
        if name not in self._floats:
            missing = np.full(len(self.summary), math.nan)
            values = self.summary[name].to_numpy(np.float64) if name in self.summary else missing
            self._floats[name] = values
        return self._floats[name]

    def notes(self, name: str) -> Mapping[int, Any]:
        """What a column of ``tables.bookkeeping`` holds of the experiment's runs, by row of the
        summary, of those that have it."""
        if name not in self._notes:
            texts = self.summary[name].tolist() if name in self.summary else None
            known = ((row, texts[row]) for row in self.row_of.values()) if texts else ()
            self._notes[name] = {row: orjson.loads(t) for row, t in known if isinstance(t, str)}
        return self._notes[name]

    def agreed(self, point: Point, name: str) -> Any:
        """What all runs of a point note alike; None where they do not."""
        notes = self.notes(name)
        first, *others = (notes.get(row) for row in point.rows.tolist() or [-1])
        return first if all(other == first for other in others) else None

    @cached_property
    def trains(self) -> bool:
        """Whether runs keep a loss, an accuracy or the time of training."""
        metrics = {metric for metric, _ in self.measures}
        return bool(self.notes("_epochs") or metrics & {"training_time", "time_to_target"})

    @cached_property
    def knows_energy(self) -> bool:
        """Whether runs say what energy they took."""
        metrics = {metric for metric, _ in self.measures}
        return bool(self.notes("_energy") or metrics & set(ENERGY))

    def repeats(self, point: Point, measure: Measure) -> Floats:
        """Means of the point's runs, without missing ones."""
        values = self.numbers(measure[0], "mean", measure[1])[point.rows]
        return np.asarray(values[np.isfinite(values)], np.float64)

    def costs(self, measure: Measure, counts: Floats, values: Floats) -> Floats:
        """What a unit of work costs by values of a rate, or a time, at counts of the scale
        (``analysis.prediction.series``)."""
        if not self.quantities[measure[0]].of_time:
            return counts / values
        return values * counts if self.experiment["scaling"] == "strong" else values

    def stated(self, point: Point, measure: Measure) -> Stated | None:
        """What the source of a point's only run states of its spread; None if it states nothing."""
        values = self.repeats(point, measure)
        if values.size != 1 or point.rows.size != 1 or measure[1] != "run":
            return None
        stated = self.notes(STATED).get(int(point.rows[0]), {}).get(measure[0])
        return None if stated is None else Stated(float(values[0]), *stated)

    @cached_property
    def leaders(self) -> list[str]:
        """Independent varying parameters."""
        return fold_axes(self.experiment)[0]

    def rounded(self, point: Point, measure: Measure) -> float:
        """By what share of itself printing with few digits may have moved a point's mean: all its
        runs may be rounded to the same side."""
        if measure[1] != "run" or not (notes := self.notes(ROUNDED)):
            return 0.0
        halves = [notes.get(int(row), {}).get(measure[0], 0.0) for row in point.rows]
        if not any(halves):
            return 0.0
        return float(max(halves)) / abs(float(self.repeats(point, measure).mean()))

    @property
    def level(self) -> float:
        """Level at which intervals are taken that cover 95 %: a higher one where repeats were added
        until points were precise."""
        repeats = self.experiment.get("repeats")
        return repeats["level"] if repeats else CONFIDENCE

    def mean(self, point: Point, measure: Measure) -> Estimate:
        """A point's mean, NaN without a value, and its 95 % interval: by what its repeats and those
        of the other points tell of its scatter (``errors``), or by what its source states."""
        if stated := self.stated(point, measure):
            return stated_mean(stated)
        repeats = self.repeats(point, measure)
        if not repeats.size:
            return Estimate(math.nan)
        error = self.errors(measure)[point.source].mean(place_of(point))
        mean = mean_of(repeats, self.level)
        mean = mean if error is None else error.around(mean.value, self.level)
        return mean.widened(self.rounded(point, measure))

    def log_error(self, point: Point, base: Point, measure: Measure) -> LogError | None:
        """Standard error of the logarithm of the ratio of two points' means; None where nothing
        tells it."""
        if self.stated(point, measure) or self.stated(base, measure):
            sides = [self.stated(p, measure) or self.repeats(p, measure) for p in (point, base)]
            return stated_ratio_error(*sides)
        if not point.rows.size or not base.rows.size or point.source != base.source:
            return stated_ratio_error(self.repeats(point, measure), self.repeats(base, measure))
        return self.errors(measure)[point.source].ratio(place_of(point), place_of(base))

    def compare(
        self, point: Point, base: Point, measure: Measure, per: float = 1.0, null: float = 1.0
    ) -> Ratio:
        """A point's mean over that of another one, over ``per``: with its 95 % interval, and the p
        value of its being ``null``, by one error (``log_error``)."""
        ratio = ratio_of_means(
            self.repeats(point, measure),
            self.repeats(base, measure),
            self.log_error(point, base, measure),
            self.level,
            per=per,
            null=null,
            rounded=self.rounded(point, measure) + self.rounded(base, measure),
        )
        stated = self.stated(point, measure) or self.stated(base, measure)
        return replace(ratio, how="stated") if stated and ratio.known else ratio

    def errors(self, measure: Measure) -> Mapping[str | None, Errors]:
        """By source what the repeats of a metric tell of the error of each point (``place_of``)."""
        if measure not in self._errors:
            self._errors[measure] = self.errors_in(self.numbers(measure[0], "mean", measure[1]))
        return self._errors[measure]

    def errors_in(self, values: Floats) -> Mapping[str | None, Errors]:
        """The same of a quantity that is given for each row of the summary (NaN: missing)."""
        by_source: dict[str | None, dict[Hashable, Floats]] = {}
        for point in self.points():
            if point.rows.size:
                own = values[point.rows]
                of_source = by_source.setdefault(point.source, {})
                of_source[place_of(point)] = own[np.isfinite(own)]
        # How imported runs were run is not known; repeats that were added until points were precise
        # say too little of their scatter.
        alone = self.level != CONFIDENCE
        return {
            source: Errors(
                repeats,
                [
                    (layout.points, values[layout.runs]) for layout in self.layouts
                    if layout.points[0] in repeats
                ],
                shared=not alone and source != "imported",
            )
            for source, repeats in by_source.items()
        }  # fmt: skip

    @cached_property
    def layouts(self) -> list[Layout]:
        """Which of the runs form blocks. Imported ones do not: how they were run is not known.

        None where repeats were added until points were precise: those that stopped at the same
        time are those that scattered little by chance, so their variances say too little.
        """
        if self.level != CONFIDENCE or not {"repeat", "started"} <= set(self.summary):
            return []
        repeats, started = (self.summary[name].tolist() for name in ("repeat", "started"))
        rows, points = [], []
        for point in self.points():
            if point.source != "imported" and point.rows.size > 1:
                rows += point.rows.tolist()
                points += [place_of(point)] * point.rows.size
        began = [start_seconds(started[row]) for row in rows]
        laid_out = layouts(points, [repeats[row] for row in rows], began)
        places = np.array(rows, np.intp)
        return [Layout(layout.points, places[layout.runs]) for layout in laid_out]

    def points(self) -> list[Point]:
        """Points in plan order; one per source, and one without source where none finished."""
        return self._points

    @cached_property
    def _points(self) -> list[Point]:
        """The points of the plan, one for each source of numbers; without a source where no run is
        finished."""
        sources, samples = (self.summary[name].tolist() for name in ("source", "samples"))
        others = self.notes(LOAD)
        runs_at: dict[str, list[PlanRun]] = {}
        for run in self.experiment["runs"]:
            key = canonical_json({name: run["point"][name] for name in self.axes})
            runs_at.setdefault(key, []).append(run)
        points = []
        for runs in runs_at.values():
            about: dict[str, Any] = {
                "values": {name: runs[-1]["point"][name] for name in self.axes},
                "planned": len(runs),
                "work": runs[-1].get("work"),
                "stale": sum(run["status"] == Status.STALE for run in runs),
                "cut": sum(run["status"] == Status.UNFINISHED for run in runs),
                "failed": [run["cause"] for run in runs if run["status"] == Status.FAILED],
                "threads_per_core": runs[-1].get("threads_per_core"),
            }
            by_source: dict[str | None, list[int]] = {}
            for run in runs:
                if (row := self.row_of.get(run["run_id"])) is not None:
                    by_source.setdefault(sources[row], []).append(row)
            for source, every in (by_source or {None: []}).items():
                kept = [every[place] for place in undisturbed([others.get(row) for row in every])]
                sizes = {None if pd.isna(samples[row]) else int(samples[row]) for row in kept}
                size = sizes.pop() if len(sizes) == 1 else None
                rows = np.array(kept, np.intp)
                points.append(Point(source=source, rows=rows, samples=size, **about))
        return points
