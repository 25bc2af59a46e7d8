"""The tables of counts that were not measured (docs/methods/prediction.md).

``prediction`` has rates of all ranks together (total throughput, and plain metrics in
something/s) and times of work. Its rows have the source ``predicted``, and are in no other table.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.prediction.forecast import (
    Prediction as Forecast,
)
from scalesweep.analysis.prediction.forecast import (
    knee,
    predict,
    refusals,
    rolling_forecasts,
    trusted_limit,
)
from scalesweep.analysis.prediction.series import Series, refusal
from scalesweep.aspects.prediction.target_times import TargetTime, target_rows
from scalesweep.core.files import canonical_json
from scalesweep.core.plan_format import PlanExperiment, target_efficiency
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.results import Series as ScalingSeries
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.machine import UNKNOWN, Machine
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.predictable import PREDICTED, MeasuredSeries, predictable, shared
from scalesweep.tables.wall_times import pending_groups, series_key, wall_series, wall_times


@dataclass(frozen=True, kw_only=True)
class Runtime(DeclaredRow, table="runtimes"):
    """A run of a point that has no result, in a series that can be predicted."""

    run_id: str = column("the run")
    expected_s: Estimate = column("the wall time of its program", "s", ends=("low_s", "high_s"))


def runtime_rows(inputs: TableInputs) -> Iterator[Runtime]:
    """A row for each run of a point that has no result, where its series can be predicted.

    From the wall times of measured runs, whose work per rank (in weak scaling) or in all (in strong
    scaling) is the same.
    """
    data = inputs.data
    if data.experiment["scaling"] not in OF_SAMPLES or data.scale not in data.axes:
        return
    pending = pending_groups(data, inputs.series)
    walls = wall_times(data) if pending else {}
    for group in inputs.series:
        measured = [point for point in group if point.rows.size]
        missing = pending.get(series_key(data, group[0]), []) if measured else []
        if missing and measured[0].source == "measured":
            series = wall_series(data, measured, walls, inputs.machine)
            yield from _runtime_rows(data, missing, series)


def _runtime_rows(
    data: ExperimentData, missing: Sequence[Point], series: Series
) -> Iterator[Runtime]:
    """Every run of the missing points that can be predicted, by wall times."""
    if refusal(series):
        return
    limit = trusted_limit(series)
    # Between measured counts other estimates do: intervals hold beyond the largest only.
    every = [point.values[data.scale] for point in missing]
    wanted = [count for count in every if series.ranks[-1] < count <= limit]
    forecast = predict(series, wanted)
    low, high = forecast.interval()
    expected: dict[str, Estimate] = {}
    for place, count in enumerate(wanted):
        ranks = count if series.scaling == "strong" else 1
        seconds = (float(values[place]) / ranks for values in (forecast.cost, low, high))
        expected[canonical_json(count)] = Estimate(*seconds)
    points = {canonical_json(dict(point.values)) for point in missing}
    for run in data.experiment["runs"]:
        point = {name: run["point"][name] for name in data.axes}
        known = expected.get(canonical_json(point[data.scale]))
        if known and canonical_json(point) in points:
            yield Runtime(run_id=run["run_id"], expected_s=known)


MODELS_NAMED = 3
# Rolling forecasts named that did not hold.
MISSED_NAMED = 6


@dataclass(frozen=True, kw_only=True)
class Prediction(DeclaredRow, table="prediction"):
    """A count of a series that was not measured, and what it would give in one measure.

    Parameters that change along the series are missing. A row that is refused has no number.
    """

    source: str = column("`predicted`", default=PREDICTED)
    based_on: str = column("the source of the points that the series is continued from")
    metric: str = column("what is predicted")
    phase: str = column("`init`, `later` or `run`")
    unit: str = column("the unit of `value`")
    value: Estimate | None = column(
        "the predicted rate or time", ends=("low", "high"), default=None
    )
    low_50: float | None = column("lower end of the 50 % interval of `value`", default=None)
    high_50: float | None = column("upper end of the 50 % interval of `value`", default=None)
    efficiency: Estimate | None = column(
        "what a unit of work costs at the smallest count over what it costs here", "1", default=None
    )
    term_share: float | None = column("share of the cost that `term` has", "1", default=None)
    part_share: float | None = column("share of the step that `part` has", "1", default=None)
    from_repeats: float | None = column("of the variance: from few repeats", "1", default=None)
    from_scatter: float | None = column("from scatter between counts", "1", default=None)
    from_models: float | None = column("from models that differ", "1", default=None)
    from_regime: float | None = column("from what may change beyond", "1", default=None)
    from_border: float | None = column(
        "from borders of the machine that are crossed", "1", default=None
    )
    node_hours: Estimate | None = column("node-hours of an epoch", "h", default=None)
    below_target: Estimate | None = column(
        "the count where efficiency falls below the target; infinite where it does so beyond "
        "`trusted_to`",
        "1",
        default=None,
    )
    points: int | None = column("measured counts of the series", "1")
    smallest: int | None = column("the smallest of them", "1")
    largest: int | None = column("the largest of them", "1")
    trusted_to: int | None = column("the count beyond which nothing is trusted", "1", default=None)
    forecasts: int | None = column("rolling forecasts of measured counts", "1", default=None)
    forecasts_within: int | None = column("those whose interval held", "1", default=None)
    term: str | None = column("the growing term with the largest share", default=None)
    part: str | None = column("the part of a step that grows most", default=None)
    models: str | None = column("the models with the largest weights", default=None)
    uninformed: str | None = column(
        "growing terms that no measured count informs, left out", default=None
    )
    missed: str | None = column(
        "rolling forecasts whose interval did not hold, with measured over predicted, less 1",
        default=None,
    )
    refused: str | None = column("why there is no number", default=None)

    @property
    def row(self) -> dict[str, Any]:
        """The point as figures, findings and tables of the page describe it."""
        return {**self.point, "source": self.source}


def prediction_rows(
    data: ExperimentData,
    groups: Sequence[Sequence[Point]],
    counts: Sequence[int],
    machine: Machine = UNKNOWN,
) -> Iterator[Prediction]:
    """A row per series, rate and count of ``counts`` that was not measured.

    ``groups``: the points of each series, by scale; ``machine``: what probes say of it.
    """
    for measured in predictable(data, groups, machine):
        wanted = [count for count in counts if count not in measured.counts]
        if wanted:
            yield from _rows(data, measured, wanted)


def _rows(
    data: ExperimentData, measured: MeasuredSeries, counts: Sequence[int]
) -> Iterator[Prediction]:
    """The rows of one series."""
    series = measured.series
    same = shared(measured.points, data)
    head: dict[str, Any] = {
        "based_on": measured.points[0].source,
        "metric": measured.measure[0],
        "phase": measured.measure[1],
        "unit": data.quantities[measured.measure[0]].unit,
        "points": len(measured.points),
        "smallest": measured.counts[0],
        "largest": measured.counts[-1],
    }
    if short := refusal(series):
        for count in counts:
            yield Prediction(point={**same, data.scale: count}, **head, refused=short)
        return
    limit, why = trusted_limit(series), refusals(series, counts, data.scale)
    head |= {"trusted_to": limit, **_rolled(series)}
    if bend := knee(series, target_efficiency(data.experiment)):
        head["below_target"] = Estimate(bend.count, bend.low, bend.high)
    possible = [count for count, no in zip(counts, why, strict=True) if not no]
    forecast = predict(series, possible)
    head["uninformed"] = ", ".join(forecast.fits.uninformed) or None
    for count, no in zip(counts, why, strict=True):
        point = {**same, data.scale: count}
        if no:
            yield Prediction(point=point, **head, refused=no)
            continue
        numbers = _numbers(measured, forecast, possible.index(count))
        cost = _cost(data.experiment, measured, numbers["value"], count)
        yield Prediction(point=point, **head, **numbers, node_hours=cost)


def _rolled(series: Series) -> dict[str, Any]:
    """How the rolling forecasts of a series came out, and those that did not hold."""
    every = rolling_forecasts(series)
    missed = [forecast for forecast in every if not forecast.within]
    words = [f"{f.target:,} from {f.largest:,}: {100 * f.error:+.1f} %" for f in missed]
    more = [f"{len(words) - MISSED_NAMED} more"] if len(words) > MISSED_NAMED else []
    return {
        "forecasts": len(every),
        "forecasts_within": len(every) - len(missed),
        "missed": "; ".join([*words[:MISSED_NAMED], *more]) or None,
    }


def _numbers(measured: MeasuredSeries, forecast: Forecast, place: int) -> dict[str, Any]:
    """What is predicted at one target."""
    count = float(forecast.targets[place])
    costs = (forecast.cost, *forecast.interval(0.95), *forecast.interval(0.5))
    value, *ends = (measured.value(float(cost[place]), count) for cost in costs)
    efficiency = (float(values[place]) for values in forecast.efficiency())
    term, share = forecast.dominating(place)
    part, part_share = forecast.growing_part(place) or (None, math.nan)
    models = [f"{formula} {weight:.0%}" for formula, weight in forecast.weighted[:MODELS_NAMED]]
    return {
        "value": Estimate(value, min(ends[:2]), max(ends[:2])),
        "low_50": min(ends[2:]),
        "high_50": max(ends[2:]),
        "efficiency": Estimate(*efficiency),
        "term": term,
        "term_share": share,
        "part": part,
        "part_share": part_share,
        "models": "; ".join(models),
        **{f"from_{name}": share for name, share in forecast.sources.shares(place).items()},
    }


def _cost(
    experiment: PlanExperiment, measured: MeasuredSeries, rate: Estimate, count: int
) -> Estimate | None:
    """Node-hours of an epoch at a count, where nodes and samples are known.

    The samples of an epoch grow with the ranks in weak scaling and stay in strong scaling.
    """
    last = measured.points[-1]
    fixed = experiment["fixed"].get("ranks_per_node")
    per_node = {point.values.get("ranks_per_node", fixed) for point in measured.points}
    samples = last.samples
    if experiment["scale"] != "ranks" or len(per_node) != 1 or not samples or None in per_node:
        return None
    if measured.measure[0] != "total_throughput" or rate.low is None or rate.high is None:
        return None
    more = count / measured.counts[-1] if experiment["scaling"] == "weak" else 1.0
    work = samples * more * -(-count // int(per_node.pop())) / 3600
    return Estimate(work / rate.value, work / rate.high, work / rate.low)


def _asked(inputs: TableInputs) -> Iterable[Prediction]:
    counts = inputs.data.experiment.get("predict") or []
    if not counts:
        return ()
    return prediction_rows(inputs.data, inputs.series, counts, inputs.machine)


MAKERS = (
    Maker(Runtime, runtime_rows),
    Maker(Prediction, _asked),
    Maker(TargetTime, target_rows),
)


def of_series(
    results: ExperimentResults, series: ScalingSeries, metric: str, phase: str
) -> list[Prediction]:
    """The rows of one series and measure, by count."""
    first, last = series.rows[0], series.rows[-1]
    own = results.key(first, results.series_names)
    rows = [
        row
        for row in results.of(Prediction)
        if (row.metric, row.phase, row.based_on) == (metric, phase, first["source"])
        and results.key(row.point, results.series_names) == own
    ]
    if results.entry["scaling"] == "strong" and len(results.series) > 1:
        ends = (results.scale_of(first), results.scale_of(last))
        rows = [row for row in rows if (row.smallest, row.largest) == ends]
    return sorted(rows, key=lambda row: results.scale_of(row.point))


def known(rows: Iterable[Prediction]) -> list[Prediction]:
    """Those with a number."""
    return [row for row in rows if not row.refused]
