"""What is asked of a campaign, and what may be measured to answer it (docs/guide/budget.md)."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.adaptive.advice_points import PointOf, Prices, longest_of
from scalesweep.adaptive.advice_series import ask_series
from scalesweep.adaptive.advice_study import Gather, Study
from scalesweep.adaptive.advice_target import Wanted
from scalesweep.adaptive.stops import stopped_at
from scalesweep.analysis.advice.advise import ChoiceAsked
from scalesweep.analysis.factors import fold_axes
from scalesweep.config.campaign import Campaign
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import Plan
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.tables.comparisons import choice_groups, compared_parameters
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.wall_times import wall_times
from scalesweep.tables.witnesses import predicting_machine

# The points of two settings, and what a run of each takes at most, in seconds.
Pair = tuple[tuple[PointOf, PointOf], tuple[float, float]]
# Unclear choices that are asked for where the target names none; the closest calls come first.
MOST_CHOICES = 12
# Relative spread of repeats where no point has two: as large as measured series lead to expect.
ASSUMED = 0.02


def make_study(
    campaign: Campaign,
    plan: Plan,
    summary: pd.DataFrame,
    prices: Prices,
    wanted: Wanted,
    budget: float,
) -> Study:
    """What is asked of a campaign by ``wanted``, from what has been measured.

    Options are runs that cost no more than ``budget`` (node-hours).
    """
    study, left_out, stopped = Study(), excluded_points(campaign), stopped_at(campaign)
    machine = predicting_machine(summary, plan)  # as the page and `scalesweep predict` know it
    entries = {entry["name"]: entry for entry in plan["experiments"]}
    for experiment in campaign.experiments:
        if experiment.control or experiment.part_of:
            continue
        if wanted.experiment not in ("", experiment.name):
            continue
        data = ExperimentData(summary, entries[experiment.name])
        gather = Gather(
            study, data, experiment, prices, wanted, budget, left_out[experiment.name],
            stopped[experiment.name], machine,
        )  # fmt: skip
        if wanted.asks_series and data.scale in data.axes and experiment.scaling in OF_SAMPLES:
            ask_series(gather)
        elif wanted.experiment and wanted.asks_series and not wanted.anything:
            gather.refuse(
                f"{experiment.name}: nothing is predicted: it needs scaling: weak or strong, and "
                f"several numbers of {data.scale}"
            )
        if wanted.asks_choices:
            ask_choices(gather)
    return study


def excluded_points(campaign: Campaign) -> dict[str, Callable[[Mapping[str, Any]], bool]]:
    """By experiment whether the campaign's rules exclude a point."""
    return {e.name: _any_of(e.rules) for e in campaign.experiments}


def _any_of(rules: Sequence[Callable[[Mapping[str, Any]], Any]]) -> Callable[[Any], bool]:
    return lambda point: any(rule(point) for rule in rules)


def ask_choices(gather: Gather) -> None:
    """Its unclear choices between two settings; where one is named, all of that one."""
    data, name = gather.data, gather.experiment.name
    leaders = fold_axes(data.experiment)[0]
    points = [point for point in data.points() if point.source == "measured"]
    walls = wall_times(data)
    choices: list[tuple[float, ChoiceAsked, Pair]] = []
    named, measure = gather.wanted.parameter, _measure(gather)
    for names in compared_parameters(data.experiment):
        if named and named not in names:
            continue
        for group in choice_groups(points, leaders, names) if measure else ():
            if not measure or not all(map(gather.fits, group.values())):
                continue
            if choice := _close_call(gather, group, names, leaders, measure, walls):
                choices.append(choice)
    if named and not choices:
        gather.refuse(f"{name}: no two finished settings of {named} to choose between")
    choices.sort(key=lambda choice: (choice[0], choice[1].name))
    if len(choices) > MOST_CHOICES:
        gather.study.note(
            f"{name}: of {len(choices)} unclear choices the {MOST_CHOICES} closest are asked for"
        )
    for _, asked, pair in choices[:MOST_CHOICES]:
        gather.study.ask_choice(asked, gather.experiment, *pair)


def _measure(gather: Gather) -> Measure | None:
    there = [point for point in gather.data.points() if point.rows.size]
    for measure in gather.measures:
        if any(gather.data.repeats(point, measure).size for point in there):
            return measure
    return None


def _close_call(
    gather: Gather,
    group: Mapping[Any, Point],
    names: Sequence[str],
    leaders: Sequence[str],
    measure: Measure,
    walls: Mapping[int, float],
) -> tuple[float, ChoiceAsked, Pair] | None:
    """The best setting of a group and the next, if it is asked for or unclear which is which;
    first how far they are apart."""
    data = gather.data
    values = {v: data.repeats(p, measure) for v, p in group.items()}
    values = {v: value for v, value in values.items() if value.size and (value > 0).all()}
    if len(values) < 2:
        return None
    higher = data.quantities[measure[0]].better == "higher"
    order = sorted(values, key=lambda v: -values[v].mean() if higher else values[v].mean())
    best, other = order[:2]
    if any(gather.stopped(gather.whole(group[value])) for value in (best, other)):
        return None  # has a result, and gets no further runs
    span = data.compare(group[best], group[other], measure)
    if (span.low > 1 or span.high < 1) and not gather.wanted.parameter:
        return None
    costs, longest = [], []
    for value in (best, other):
        others = [_walls(point, walls) for point in data.points() if point is not group[value]]
        if not (there := _walls(group[value], walls)):
            return None
        longest.append(longest_of(there, others))
        point = gather.whole(group[value])
        costs.append(gather.prices.node_hours(gather.experiment, point, longest[-1]))
    spread, sure = _spread(gather, measure)
    if not sure:
        gather.study.note(
            f"{gather.experiment.name}: no point has two runs; repeats are assumed to scatter by "
            f"{100 * ASSUMED:g} %"
        )
    where = " ".join(f"{n}={text_of(group[best].values[n])}" for n in leaders if n not in names)
    label = (
        f"{gather.experiment.name}: {', '.join(names)} {text_of(best)} or {text_of(other)}"
        f"{f' at {where}' if where else ''}"
    )
    width = math.log(span.high / span.low) if span.low > 0 else math.nan
    runs = int(values[best].size), int(values[other].size)
    asked = ChoiceAsked(label, spread, runs, (costs[0], costs[1]), width)
    apart = abs(math.log(float(values[best].mean() / values[other].mean())))
    pair = gather.whole(group[best]), gather.whole(group[other])
    return apart, asked, (pair, (longest[0], longest[1]))


def _spread(gather: Gather, measure: Measure) -> tuple[float, bool]:
    """Relative standard deviation of a run, pooled over all points; whether it is measured."""
    squares, degrees = 0.0, 0
    for point in gather.data.points():
        values = gather.data.repeats(point, measure)
        if values.size > 1 and (values > 0).all():
            squares += float(np.log(values).var() * values.size)
            degrees += values.size - 1
    known = degrees > 0 and squares > 0
    return (math.sqrt(squares / degrees), True) if known else (ASSUMED, False)


def _walls(point: Point, walls: Mapping[int, float]) -> list[float]:
    return [walls[row] for row in point.rows.tolist() if row in walls]
