"""The layouts to try at a number of ranks, inside a budget: points of the campaign, what a run of
each costs at most, and why it is worth it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scalesweep.adaptive.advice_points import UNSEEN, PointOf, Prices
from scalesweep.adaptive.layout_forecast import Expected, ForecastAt, forecast_at
from scalesweep.analysis.prediction.layouts.runs import Layout
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.point_shape import mesh_of, shape_of
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import duration, text_of
from scalesweep.core.plan_format import Plan
from scalesweep.tables.layout_runs import (
    NEEDED,
    LayoutStudy,
    is_layout_study,
    layout_from,
    layout_studies,
)
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.wall_times import wall_times

Excluded = Mapping[str, Callable[[Mapping[str, Any]], bool]]


@dataclass(frozen=True, eq=False)
class Trial:
    """A layout to try: its ``point`` and ``node_hours`` at most, None where nothing can be run."""

    experiment: str
    study: LayoutStudy
    ranks: int
    expected: Expected
    point: PointOf | None
    node_hours: float | None


@dataclass(frozen=True, eq=False)
class Trials:
    """What to try, the forecasts behind it, and what is left out and why."""

    trials: Sequence[Trial]
    forecasts: Sequence[tuple[str, ForecastAt]]
    left_out: Sequence[str]


def layout_trials(
    campaign: Campaign,
    plan: Plan,
    summary: pd.DataFrame,
    prices: Prices | None,
    excluded: Excluded,
    ranks: int,
    count: int,
    budget: float | None,
) -> Trials:
    """Up to ``count`` layouts of every study for so many ranks, together within ``budget``
    (node-hours; None: whatever they cost).

    ``prices``: None where the site starts no runs, which leaves costs and points out;
    ``excluded``: by experiment, whether the campaign excludes a point. Raises UserError where no
    experiment has layouts.
    """
    trials: list[Trial] = []
    forecasts: list[tuple[str, ForecastAt]] = []
    left_out: list[str] = []
    spent = 0.0
    experiments = {experiment.name: experiment for experiment in campaign.experiments}
    for entry in plan["experiments"]:
        if not is_layout_study(entry):
            continue
        name = entry["name"]
        data = ExperimentData(summary, entry)
        studies = layout_studies(data)
        if not studies:
            left_out.append(f"{name}: {NEEDED}, and a rate that was measured")
        for study in studies:
            points: Mapping[Layout, PointOf] | None = None
            if prices is not None:
                points = dict(_points(experiments[name], campaign, excluded[name], study, ranks))
            asked = None if points is None else [*points]
            forecast = forecast_at(study, ranks, count, asked)
            forecasts.append((name, forecast))
            for expected in forecast.trials:
                if prices is None or points is None:
                    trials.append(Trial(name, study, ranks, expected, None, None))
                    continue
                point = points[expected.layout]
                wall_s = _longest(data, study) * max(1.0, expected.slower)
                limit_s = prices.limit_s(experiments[name])
                hours = prices.node_hours(experiments[name], point, min(wall_s, limit_s))
                if wall_s > limit_s:
                    left_out.append(
                        f"{expected.layout.words}: may take {duration(wall_s)}, the limit is "
                        f"{duration(limit_s)}"
                    )
                elif budget is not None and spent + hours > budget:
                    left_out.append(
                        f"{expected.layout.words}: costs {hours:.3g} node-hours, "
                        f"{budget - spent:.3g} are left"
                    )
                else:
                    spent += hours
                    trials.append(Trial(name, study, ranks, expected, point, hours))
    if not forecasts:
        raise UserError(
            f"{campaign.file}: no experiment splits equal ranks in several ways, or {NEEDED}"
        )
    return Trials(trials, forecasts, left_out)


def _longest(data: ExperimentData, study: LayoutStudy) -> float:
    """The longest that a run of the fastest measured layout may take, in seconds, by the walls of
    all runs over how much slower their steps were; 0 where none is recorded."""
    walls = wall_times(data)
    rows = [row for point in data.points() for row in point.rows.tolist() if row in walls]
    return UNSEEN * min((walls[row] for row in rows), default=0.0)


def _points(
    experiment: Experiment,
    campaign: Campaign,
    left_out: Callable[[PointOf], bool],
    study: LayoutStudy,
    ranks: int,
) -> Iterator[tuple[Layout, PointOf]]:
    """The points of a study for so many ranks: those that are planned, and every setting of others
    that the campaign could be planned with."""
    seen: set[str] = set()
    planned = [point for point in experiment.points if point["ranks"] == ranks]
    others = [point for point in experiment.points if point["ranks"] != ranks]
    for known in [*planned, *others]:
        point = known if known["ranks"] == ranks else _moved(experiment, campaign, known, ranks)
        if point is None or left_out(point):
            continue
        if any(text_of(point[name]) != text_of(value) for name, value in study.values.items()):
            continue
        identity = canonical_json(dict(point))
        if identity in seen:
            continue
        seen.add(identity)
        benchmark = experiment.benchmark
        try:
            mesh, shape = mesh_of(benchmark, point), shape_of(benchmark, point)
            layout = layout_from(mesh, shape, benchmark.memory, point)
        except UserError:
            continue
        if layout is None or layout.ranks != ranks:
            continue
        if study.batch is None or layout.global_batch == study.batch:
            yield layout, point


def _moved(
    experiment: Experiment, campaign: Campaign, known: PointOf, ranks: int
) -> PointOf | None:
    """A point with another number of ranks, and what is derived from it; None if there is none."""
    benchmark, derivation = experiment.benchmark, experiment.derivation
    try:
        point = derivation.of({**known, "ranks": ranks})
        if derivation.broken(point):
            return None
        benchmark.check_point(point, "")
        campaign.site.check_point(point, "")
    except (UserError, ValueError):
        return None
    return point
