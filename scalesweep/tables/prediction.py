"""The table `prediction`: what unmeasured counts would give (docs/methods/prediction.md).

Of the rates of all ranks together (total throughput, and plain metrics in something/s). Its rows
have the source ``predicted``, and are in no other table.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.analysis.prediction.forecast import (
    Prediction,
    knee,
    predict,
    refusals,
    rolling_forecasts,
    trusted_limit,
)
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.table_io import typed_values
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.tables.borders import borders_of, similar_series
from scalesweep.tables.cost_parts import parts_of
from scalesweep.tables.machine import UNKNOWN, Machine
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.run_scatter import relative_error, scatter_of

PREDICTED = "predicted"
GOOD = 0.8
MODELS_NAMED = 3
# In the order of the table, behind the varying parameters. Numbers, then text.
NUMBERS = (
    *("value", "low", "high", "low_50", "high_50"),
    *("efficiency", "efficiency_low", "efficiency_high"),
    *("term_share", "part_share"),
    *("from_repeats", "from_scatter", "from_models", "from_regime", "from_border"),
    *("node_hours", "node_hours_low", "node_hours_high"),
    *("below_80", "below_80_low", "below_80_high"),
)
COUNTS = ("points", "smallest", "largest", "trusted_to", "forecasts", "forecasts_within")
WORDS = ("term", "part", "models", "uninformed", "missed", "refused")
# Rolling forecasts named that did not hold.
MISSED_NAMED = 6


@dataclass(frozen=True, eq=False)
class MeasuredSeries:
    """A scaling series of one measure with what its rate is multiplied by to be a cost."""

    measure: Measure
    points: Sequence[Point]  # with a result, by scale
    rates: Sequence[float]
    series: Series

    @property
    def counts(self) -> list[int]:
        """Its measured counts."""
        return [int(count) for count in self.series.ranks]


def prediction_column(name: str, axes: Sequence[str]) -> str:
    """Column of the table: its name, unless a varying parameter has it."""
    return f"prediction_{name}" if name in axes else name


def predictable(
    data: ExperimentData,
    groups: Sequence[Sequence[Point]],
    machine: Machine | None = None,
) -> Iterator[MeasuredSeries]:
    """Every series of an experiment in every rate that can be predicted.

    ``groups``: the points of each series, by scale; ``machine``: what its probes say, for the
    parts of the costs, which are left out where it is None.
    """
    scaling = str(data.experiment["scaling"])
    measures = [measure for measure in data.measures if _is_rate(data, measure)]
    for group in groups if scaling != "none" else ():
        for measure in measures:
            known = [(p, v) for p in group if (v := data.repeats(p, measure)).size and v.mean() > 0]
            if not known:
                continue
            points = [point for point, _ in known]
            counts = np.array([float(point.values[data.scale]) for point in points])
            if len(set(counts)) < len(counts):
                continue  # two ways to a count (devices of more or fewer ranks)
            rates = [float(values.mean()) for _, values in known]
            elsewhere = {} if machine is None else machine.scatter
            run = scatter_of(data, points[-1], measure, elsewhere)
            errors = np.array([relative_error(data, point, measure, run) for point in points])
            costs = counts / np.array(rates)
            parts = None if machine is None else parts_of(data, points, costs, measure, machine)
            similar = similar_series(data, points, groups, measure, machine)
            series = make_series(
                counts, costs, scaling, errors, parts, borders_of(data, points, machine), similar
            )
            yield MeasuredSeries(measure, points, rates, series)


def _is_rate(data: ExperimentData, measure: Measure) -> bool:
    """Whether a measure is an extensive rate of all ranks together."""
    quantity = data.quantities[measure[0]]
    epochs = measure[0] == "total_throughput" and measure[1] in EPOCH_PHASES
    plain = measure[1] == "run" and quantity.scope == "total"
    return quantity.scales and (epochs or plain)


def prediction_table(
    data: ExperimentData,
    groups: Sequence[Sequence[Point]],
    counts: Sequence[int],
    machine: Machine = UNKNOWN,
) -> pd.DataFrame | None:
    """A row per series, rate and count of ``counts`` that was not measured.

    Columns: varying parameters (missing where they change along the series), ``source``
    (predicted), ``based_on`` (the source of the points), ``metric``, ``phase``, ``unit`` and those
    named above. ``low`` and ``high`` are bounds of 95 %, ``low_50`` and ``high_50`` of 50 %;
    ``from_*`` are shares of the variance; ``below_80*`` is the count where efficiency falls below
    80 %, infinite where a bound is beyond ``trusted_to``; ``missed`` names rolling forecasts whose
    interval did not hold, with their errors (rate measured over predicted, less 1). A row that is
    refused says why and has no number. None if there is nothing to predict.
    """
    axes = data.axes
    rows: list[dict[str, Any]] = []
    for series in predictable(data, groups, machine):
        wanted = [count for count in counts if count not in series.counts]
        rows += _rows(data, series, wanted) if wanted else []
    if not rows:
        return None
    columns: dict[str, Any] = {name: typed_values([row.get(name) for row in rows]) for name in axes}
    for name in ("source", "based_on", "metric", "phase", "unit"):
        columns[prediction_column(name, axes)] = typed_values([row[f".{name}"] for row in rows])
    for name in NUMBERS:
        values = [row.get(f".{name}", math.nan) for row in rows]
        columns[prediction_column(name, axes)] = np.array(values, np.float64)
    for names, kind in ((COUNTS, int), (WORDS, str)):
        for name in names:
            values = typed_values([row.get(f".{name}") for row in rows], kind)
            columns[prediction_column(name, axes)] = values
    frame = pd.DataFrame(columns)
    frame.attrs["units"] = {}
    return frame


def _rows(
    data: ExperimentData, measured: MeasuredSeries, counts: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """The rows of one series; names that no parameter can have begin with a point."""
    series = measured.series
    head: dict[str, Any] = {
        **shared(measured.points, data),
        ".source": PREDICTED,
        ".based_on": measured.points[0].source,
        ".metric": measured.measure[0],
        ".phase": measured.measure[1],
        ".unit": data.quantities[measured.measure[0]].unit,
        ".points": len(measured.points),
        ".smallest": measured.counts[0],
        ".largest": measured.counts[-1],
    }
    if short := refusal(series):
        yield from ({**head, data.scale: count, ".refused": short} for count in counts)
        return
    limit, why = trusted_limit(series), refusals(series, counts, data.scale)
    head |= {".trusted_to": limit, **_rolled(series)}
    if bend := knee(series, GOOD):
        head |= {".below_80": bend.count, ".below_80_low": bend.low, ".below_80_high": bend.high}
    there = [count for count, no in zip(counts, why, strict=True) if not no]
    prediction = predict(series, there)
    head[".uninformed"] = ", ".join(prediction.fits.uninformed) or None
    for count, no in zip(counts, why, strict=True):
        row = {**head, data.scale: count}
        if no:
            row[".refused"] = no
        else:
            row |= _numbers(prediction, there.index(count))
            row |= _cost(data.experiment, measured, row, count)
        yield row


def _rolled(series: Series) -> dict[str, Any]:
    """How the rolling forecasts of a series came out, and those that did not hold."""
    every = rolling_forecasts(series)
    missed = [forecast for forecast in every if not forecast.within]
    words = [f"{o.target:,} from {o.largest:,}: {100 * o.error:+.1f} %" for o in missed]
    more = [f"{len(words) - MISSED_NAMED} more"] if len(words) > MISSED_NAMED else []
    return {
        ".forecasts": len(every),
        ".forecasts_within": len(every) - len(missed),
        ".missed": "; ".join([*words[:MISSED_NAMED], *more]) or None,
    }


def shared(points: Sequence[Point], data: ExperimentData) -> dict[str, Any]:
    """Varying parameters that have one value along a series; the others are None."""
    first = points[0].values
    return {
        name: first[name] if all(point.values[name] == first[name] for point in points) else None
        for name in data.axes
    }


def _numbers(prediction: Prediction, place: int) -> dict[str, Any]:
    """What is predicted at one target: a rate is the count over the cost."""
    count = float(prediction.targets[place])
    (low, high), (low_50, high_50) = prediction.interval(0.95), prediction.interval(0.5)
    efficiency = prediction.efficiency()
    term, share = prediction.dominating(place)
    part, part_share = prediction.growing_part(place) or (None, math.nan)
    models = [f"{formula} {weight:.0%}" for formula, weight in prediction.weighted[:MODELS_NAMED]]
    return {
        ".value": count / float(prediction.cost[place]),
        ".low": count / float(high[place]),
        ".high": count / float(low[place]),
        ".low_50": count / float(high_50[place]),
        ".high_50": count / float(low_50[place]),
        ".efficiency": float(efficiency[0][place]),
        ".efficiency_low": float(efficiency[1][place]),
        ".efficiency_high": float(efficiency[2][place]),
        ".term": term,
        ".term_share": share,
        ".part": part,
        ".part_share": part_share,
        ".models": "; ".join(models),
        **{f".from_{name}": share for name, share in prediction.sources.shares(place).items()},
    }


def _cost(
    experiment: PlanExperiment, measured: MeasuredSeries, row: Mapping[str, Any], count: int
) -> dict[str, float]:
    """Node-hours of an epoch at a count with bounds, where nodes and samples are known.

    The samples of an epoch grow with the ranks in weak scaling and stay in strong scaling.
    """
    last = measured.points[-1]
    per_node = {p.values.get("ranks_per_node", experiment["fixed"].get("ranks_per_node"))
                for p in measured.points}  # fmt: skip
    samples = last.samples
    if experiment["scale"] != "ranks" or len(per_node) != 1 or not samples or None in per_node:
        return {}
    if measured.measure[0] != "total_throughput":
        return {}
    more = count / measured.counts[-1] if experiment["scaling"] == "weak" else 1.0
    work = samples * more * -(-count // int(per_node.pop())) / 3600
    return {
        ".node_hours": work / row[".value"],
        ".node_hours_low": work / row[".high"],
        ".node_hours_high": work / row[".low"],
    }
