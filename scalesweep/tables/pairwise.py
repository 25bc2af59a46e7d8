"""Comparisons: the values of one parameter side by side, everything else being equal.

For parameters whose values are names or switches (a layout, a variable update, XLA or not): the
ratio of each value over the reference value, and which value is best. Points are compared at the
same number of ranks (or devices); parameters that only follow another one do not count. Linked
parameters (a variable update with its all-reduce) are compared together, as one choice.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.factors import fold_axes, planned_points
from scalesweep.analysis.stats import (
    SIGNIFICANT,
    Interval,
    ratio_interval,
    ratio_p,
    without_interval,
)
from scalesweep.analysis.table_io import typed_values
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import number, text_of
from scalesweep.core.plan_format import PlanExperiment, parameter_of
from scalesweep.tables.points import ExperimentData, Measure, Point

# Parameters that are compared as one.
Choice = tuple[str, ...]


def main_measures(data: ExperimentData) -> list[Measure]:
    """The phases of the metric that an experiment is about: the one that the benchmark names,
    else the total throughput, else the first."""
    metrics = list(dict.fromkeys(metric for metric, _ in data.measures))
    wanted = (data.experiment["main_metric"], "total_throughput")
    main = next((metric for metric in wanted if metric in metrics), next(iter(metrics), None))
    return [measure for measure in data.measures if measure[0] == main]


def compared_parameters(experiment: PlanExperiment) -> list[Choice]:
    """Independent varying parameters whose values are names or switches, and that say how
    something is computed, not what (``workload`` in benchmark.yaml); linked ones together."""
    points = planned_points(experiment)
    names = [
        name
        for name in fold_axes(experiment)[0]
        if name != experiment["scale"]
        and not parameter_of(experiment, name).get("workload")
        and all(isinstance(point[name], str | bool | None) for point in points)
    ]
    linked = tuple(name for name in names if name in experiment["linked"])
    choices: list[Choice] = [(name,) for name in names if name not in linked]
    return [linked, *choices] if linked else choices


def choice_of(names: Choice, point: Mapping[str, Any]) -> str | bool | None:
    """A point's value of a choice: of one parameter its own, of several all in one text."""
    values = [point[name] for name in names]
    return values[0] if len(values) == 1 else ", ".join(map(text_of, values))


def reference_value(experiment: PlanExperiment, names: Choice) -> str | bool | None:
    """What the values of a choice are compared with: the defaults where planned, else the first
    planned value."""
    values = [choice_of(names, point) for point in planned_points(experiment)]
    default = choice_of(names, {name: parameter_of(experiment, name)["default"] for name in names})
    return default if default in values else values[0]


def make_comparisons(data: ExperimentData, points: Sequence[Point]) -> dict[str, pd.DataFrame]:
    """Tables ``comparisons`` and ``best`` of an experiment; empty where nothing compares.

    ``comparisons``: a row per value other than the reference: `ratio` of the means with its 95 %
    interval (``low``, ``high``), the p value ``p`` of its being 1, and what these come from
    (``interval_from``), or why it has ``no_interval``. ``best``: a row per group of points that
    differ in one parameter: the best value and the next, why they have ``no_interval``, and ``p``,
    the largest p value of the best against each other one (``next_p``: against the next), whether
    it is ``clear`` at 5 %. Both per parameter, source, metric and phase. Findings judge these p
    values among all of an experiment.
    """
    leaders = fold_axes(data.experiment)[0]
    ratios: list[dict[str, Any]] = []
    best: list[dict[str, Any]] = []
    for names in compared_parameters(data.experiment):
        reference = reference_value(data.experiment, names)
        for group in choice_groups(points, leaders, names):
            for measure in main_measures(data):
                ratios += _ratios(data, group, names, reference, measure, leaders)
                best += _best(data, group, names, measure, leaders)
    tables = {"comparisons": ratios, "best": best}
    return {name: _frame(rows) for name, rows in tables.items() if rows}


def choice_groups(
    points: Sequence[Point], leaders: Sequence[str], names: Choice
) -> Iterator[dict[Any, Point]]:
    """Finished points that differ in one choice only, by its value, in plan order."""
    groups: dict[str, dict[Any, Point]] = {}
    for point in points:
        if point.rows.size:
            rest = [point.values[other] for other in leaders if other not in names]
            group = groups.setdefault(canonical_json([point.source, rest]), {})
            group.setdefault(choice_of(names, point.values), point)
    return (group for group in groups.values() if len(group) > 1)


def _ratios(
    data: ExperimentData,
    group: Mapping[Any, Point],
    names: Choice,
    reference: str | bool | None,
    measure: Measure,
    leaders: Sequence[str],
) -> Iterator[dict[str, Any]]:
    """Rows of the points of a group over the one at ``reference``: ratio of means, 95 % interval,
    p.

    There is no row for the reference and for points without
    repeats.
    """
    base = data.repeats(group[reference], measure) if reference in group else np.empty(0)
    for value, point in group.items():
        repeats = data.repeats(point, measure)
        if value == reference or not repeats.size or not base.size:
            continue
        if base.mean() <= 0 or repeats.mean() < 0:
            continue  # of what may be negative a ratio is no "times"
        interval = data.ratio(point, group[reference], measure)
        yield {
            **_row(data, point, names, measure, leaders),
            "value": text_of(value),
            "reference": text_of(reference),
            "ratio": float(repeats.mean() / base.mean()),
            "low": interval.low,
            "high": interval.high,
            "p_value": data.ratio_p(point, group[reference], measure),
            "interval_from": _how(interval),
            "no_interval": None
            if math.isfinite(interval.low)
            else without_interval(repeats, base) or None,
            "repeats": repeats.size,
            "reference_repeats": base.size,
        }


def _how(interval: Interval) -> str | None:
    """What a ratio's interval comes from; None where it has none."""
    if not math.isfinite(interval.low):
        return None
    if interval.method == "stated":
        return "stated"
    return f"repeats, {number(interval.degrees)} degrees of freedom"


def _best(
    data: ExperimentData,
    group: Mapping[Any, Point],
    names: Choice,
    measure: Measure,
    leaders: Sequence[str],
) -> Iterator[dict[str, Any]]:
    """The row of the best point of a group; none unless two points have repeats.

    Its p is the largest of all rivals, NaN if one of them has no interval.
    """
    higher = data.quantities[measure[0]].better == "higher"
    ranked = []
    for value, point in group.items():
        if (repeats := data.repeats(point, measure)).size:
            ranked.append((value, point, float(repeats.mean()), data.interval(point, measure)))
    if len(ranked) < 2:
        return
    ranked.sort(key=lambda entry: -entry[2] if higher else entry[2])
    (value, point, mean, span), (other, second, other_mean, other_span) = ranked[:2]
    chances = [data.ratio_p(point, rival, measure) for _, rival, _, _ in ranked[1:]]
    # What has no interval is clear of nothing. That the best is chosen by the same data needs no
    # correction (analysis.joint).
    p = math.nan if any(math.isnan(chance) for chance in chances) else max(chances)
    yield {
        **_row(data, point, names, measure, leaders),
        "best": text_of(value),
        "mean": mean,
        "low": span.low,
        "high": span.high,
        "no_interval": without_interval(data.repeats(point, measure)) or None,
        "next": text_of(other),
        "next_no_interval": without_interval(data.repeats(second, measure)) or None,
        "next_mean": other_mean,
        "next_low": other_span.low,
        "next_high": other_span.high,
        "compared": len(ranked),
        "next_p": chances[0],
        "p_value": p,
        "clear": p < SIGNIFICANT,
    }


def _row(
    data: ExperimentData, point: Point, names: Choice, measure: Measure, leaders: Sequence[str]
) -> dict[str, Any]:
    metric, phase = measure
    return {
        "parameter": ", ".join(names),
        **{leader: point.values[leader] for leader in leaders},
        "source": point.source,
        "metric": metric,
        "phase": phase,
        "unit": data.quantities[metric].unit,
        "better": data.quantities[metric].better,
    }


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    names = dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame({name: typed_values([row.get(name) for row in rows]) for name in names})


def site_table(
    data: ExperimentData, points: Sequence[Point], others: Mapping[str, ExperimentData], site: str
) -> pd.DataFrame | None:
    """The same runs on several sites: a row per point, source, site, metric and phase.

    ``others`` holds by site what other sites have of this experiment's runs. ``ratio`` is that
    of the site's mean over this one's, with its 95 % interval. None where no other site has any.
    """
    rows = []
    twins: dict[str, list[tuple[str, ExperimentData, Point]]] = {}
    for name, other in others.items():
        for twin in other.points():
            if twin.rows.size:
                twins.setdefault(canonical_json(twin.values), []).append((name, other, twin))
    for point in points:
        same = twins.get(canonical_json(point.values), [])
        for measure in main_measures(data):
            here = data.repeats(point, measure)
            places = [(site, data, point)] if here.size else []
            places += same
            if len({name for name, _, _ in places}) < 2:
                continue
            rows += [
                {
                    **{axis: point.values[axis] for axis in data.axes},
                    "site": name,
                    "source": twin.source,
                    "metric": measure[0],
                    "phase": measure[1],
                    "unit": data.quantities[measure[0]].unit,
                    "repeats": (repeats := there.repeats(twin, measure)).size,
                    "mean": float(repeats.mean()) if repeats.size else math.nan,
                    **_over_here(
                        there.interval(twin, measure), repeats, here, name == site, data.level
                    ),
                }
                for name, there, twin in places
            ]
    return _frame(rows) if rows else None


def _chance(row: Any, other: Any, level: float) -> float:
    """p value of two samples of repeats having the same mean; NaN where nothing tells."""
    if without_interval(row, other):
        return math.nan
    p = ratio_p(row, other, math.log(row.mean() / other.mean()))
    return min(1.0, p * SIGNIFICANT / (1 - level))


def _over_here(
    spread: Interval, repeats: Any, here: Any, same: bool, level: float
) -> dict[str, float]:
    nothing = math.nan
    values = {
        "low": spread.low,
        "high": spread.high,
        "ratio": 1.0 if same else nothing,
        "ratio_low": nothing,
        "ratio_high": nothing,
        "ratio_p": nothing,
    }
    if not same and repeats.size and here.size and here.mean() != 0:
        interval = ratio_interval(repeats, here, level=level)
        values |= {
            "ratio": float(repeats.mean() / here.mean()),
            "ratio_low": interval.low,
            "ratio_high": interval.high,
            "ratio_p": _chance(repeats, here, level),
        }
    return values
