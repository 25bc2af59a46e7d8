"""The layouts to try at a number of ranks, inside a budget: points of the campaign, what a run of
each costs at most, and why it is worth it."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.adaptive.advice_points import UNSEEN, PointOf, Prices
from scalesweep.adaptive.layout_forecast import Expected, ForecastAt, forecast_at, why_tried
from scalesweep.analysis.choose_best_of import Options, choose_best_of
from scalesweep.analysis.prediction.layouts.runs import Layout
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.point_shape import mesh_of, shape_of
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import counted, duration, text_of
from scalesweep.core.plan_format import Plan
from scalesweep.tables.layout_runs import (
    NEEDED,
    LayoutStudy,
    is_layout_study,
    layout_from,
    layout_studies,
)
from scalesweep.tables.machine import known_machine
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.wall_times import wall_times

Excluded = Mapping[str, Callable[[Mapping[str, Any]], bool]]


@dataclass(frozen=True, eq=False)
class Trial:
    """A layout and what was decided on it: whether it is ``chosen``, and ``reason``.

    ``expected``: None where nothing was worked out, because it would not start or fit; ``point``
    and ``node_hours`` at most: None where nothing can be run; ``gain``: what it adds to the others
    that are chosen.
    """

    experiment: str
    study: LayoutStudy
    ranks: int
    layout: Layout
    chosen: bool
    reason: str
    expected: Expected | None = None
    point: PointOf | None = None
    node_hours: float | None = None
    gain: float | None = None


@dataclass(frozen=True, eq=False)
class Trials:
    """Every layout with what was decided, those that are chosen first, the forecasts behind it, and
    what else is left out and why."""

    decisions: Sequence[Trial]
    forecasts: Sequence[tuple[str, ForecastAt]]
    left_out: Sequence[str]

    @property
    def chosen(self) -> list[Trial]:
        """What to try."""
        return [trial for trial in self.decisions if trial.chosen]


@dataclass(frozen=True, eq=False)
class _Asked:
    """A study's layouts, what each costs at most, and why some cannot be run."""

    name: str
    forecast: ForecastAt
    options: Options
    points: Sequence[PointOf | None]
    hours: Sequence[float | None]
    barred: Mapping[int, str]


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
    (node-hours; None: whatever they cost), chosen by one programme.

    ``prices``: None where the site starts no runs, which leaves costs and points out;
    ``excluded``: by experiment, whether the campaign excludes a point. Raises UserError where no
    experiment has layouts.
    """
    asked: list[_Asked] = []
    forecasts: list[tuple[str, ForecastAt]] = []
    left_out: list[str] = []
    experiments = {experiment.name: experiment for experiment in campaign.experiments}
    machine = known_machine(summary, plan)
    for entry in plan["experiments"]:
        if not is_layout_study(entry):
            continue
        name = entry["name"]
        data = ExperimentData(summary, entry)
        studies = layout_studies(data, machine)
        if not studies:
            left_out.append(f"{name}: {NEEDED}, and a rate that was measured")
        for study in studies:
            points: Mapping[Layout, PointOf] | None = None
            if prices is not None:
                points = dict(_points(experiments[name], campaign, excluded[name], study, ranks))
            forecast = forecast_at(study, ranks, count, None if points is None else [*points])
            forecasts.append((name, forecast))
            if forecast.options is not None:
                asked.append(_priced(data, forecast, experiments.get(name), points, prices, budget))
    if not forecasts:
        none = "no experiment splits equal ranks in several ways, by a mesh of its benchmark"
        raise UserError(f"{campaign.file}: {'; '.join(left_out) or none}")
    chosen = choose_best_of([each.options for each in asked], budget)
    decisions = [
        trial
        for each, places in zip(asked, chosen, strict=True)
        for trial in _decisions(each, places, budget)
    ]
    decisions += [
        Trial(name, forecast.study, ranks, layout, False, why)
        for name, forecast in forecasts
        for layout, why in forecast.left
    ]
    left_out += [
        f"{', '.join(filter(None, (name, forecast.study.words)))}: {why}"
        for name, forecast in forecasts
        for why in forecast.left_out
    ]
    barred = Counter(why for each in asked for why in each.barred.values())
    left_out += [f"{counted(n, 'layout')}: {why}" for why, n in barred.most_common()]
    return Trials(decisions, forecasts, left_out)


def _priced(
    data: ExperimentData,
    forecast: ForecastAt,
    experiment: Experiment | None,
    points: Mapping[Layout, PointOf] | None,
    prices: Prices | None,
    budget: float | None,
) -> _Asked:
    """The layouts of a forecast with what each costs."""
    options, name = forecast.options, data.experiment["name"]
    assert options is not None
    nothing = [None] * len(forecast.layouts)
    if prices is None or points is None or experiment is None:
        return _Asked(name, forecast, options, nothing, nothing, {})
    longest, limit_s = _longest(data), prices.limit_s(experiment)
    there: list[PointOf | None] = []
    hours: list[float | None] = []
    barred: dict[int, str] = {}
    for place, expected in enumerate(forecast.layouts):
        point = points[expected.layout]
        wall_s = longest * max(1.0, expected.slower)
        cost = prices.node_hours(experiment, point, min(wall_s, limit_s))
        there.append(point)
        hours.append(cost)
        if wall_s > limit_s:
            barred[place] = f"may take longer than the limit of {duration(limit_s)}"
        elif budget is not None and cost > budget:
            barred[place] = f"costs more than {budget:.3g} node-hours alone"
    costs = [math.inf if i in barred else cost or 0.0 for i, cost in enumerate(hours)]
    priced = replace(options, costs=np.where(np.isfinite(options.costs), costs, np.inf))
    return _Asked(name, forecast, priced, there, hours, barred)


def _decisions(asked: _Asked, places: Sequence[int], budget: float | None) -> Iterator[Trial]:
    """What is decided on each layout of a study, those that are chosen first."""
    forecast, options = asked.forecast, asked.options
    spent = math.fsum(asked.hours[i] or 0.0 for i in places)
    rest = [i for i in range(len(forecast.layouts)) if i not in places]
    for place in [*places, *rest]:
        chosen = place in places
        before = list(places[: places.index(place)]) if chosen else list(places)
        gain = None if place in asked.barred else options.added(place, before)
        if chosen:
            reason = why_tried(options, place, before)
        elif place in asked.barred:
            reason = asked.barred[place]
        else:
            cost = asked.hours[place] or 0.0
            dear = budget is not None and spent + cost > budget and len(places) < options.count
            reason = (
                f"costs {cost:.3g} node-hours, {(budget or 0.0) - spent:.3g} are left"
                if dear
                else "adds less than those that are chosen"
            )
        expected = forecast.layouts[place]
        yield Trial(
            asked.name, forecast.study, forecast.ranks, expected.layout, chosen, reason, expected,
            asked.points[place], asked.hours[place], gain,
        )  # fmt: skip


def _longest(data: ExperimentData) -> float:
    """The longest that a run of the fastest layout may take, in seconds: UNSEEN times the shortest
    measured wall time; 0 where none is recorded."""
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
