"""What to measure next with so many node-hours: candidates, and the set that is worth most.

A candidate is a hole (a planned point without all its runs), the next doubling of a series, or as
many repeats as make a choice between two settings clear. Its value is 1 for a hole; 1 for repeats;
for a doubling the logarithm to base 2 of the upper over the lower bound of what is predicted
there, at most 1, which a measurement takes away.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.adaptive.next_point import PointOf, derived
from scalesweep.adaptive.policy import stopped_at
from scalesweep.analysis.factors import fold_axes
from scalesweep.analysis.prediction import predict, refusals
from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.core.formatting import duration, listed, text_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import Plan
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.core.status import Status
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm.job_table import JOBS, overhead_s, read_jobs
from scalesweep.state.run_state import RunState
from scalesweep.tables.comparisons import (
    choice_groups,
    compared_parameters,
    main_measures,
    mean_ratio,
)
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.predictable import predictable, predicting_machine, wall_times
from scalesweep.tables.scaling import series_of

MOST_REPEATS = 20
# Of a run whose time is not known better: what it may take over the longest of its series.
UNSEEN = 1.25
# Standard errors that a ratio lies from 1 that is clear at 5 % in 80 % of studies: 1.96 + 0.84
# (J. Cohen, Statistical power analysis, 1988).
_POWER = 2.8


@dataclass(frozen=True)
class Candidate:
    """Runs of a point that may be measured: ``measured`` so far, ``runs`` more, for ``reason``.

    ``group``: candidates that are worth their value only together. ``chosen``: within the budget;
    ``refused``: why it cannot be.
    """

    experiment: str
    point: PointOf
    words: str
    measured: int
    runs: int
    node_hours: float
    value: float
    reason: str
    group: str
    chosen: bool = False
    refused: str = ""


def advise(
    campaign: Campaign,
    plan: Plan,
    summary: pd.DataFrame,
    states: Mapping[str, RunState],
    budget: float,
) -> list[Candidate]:
    """All candidates of a campaign, those that the budget (node-hours) is best spent on chosen."""
    machine, estimates = predicting_machine(summary, plan), Estimates(campaign, states)
    stopped, entries = stopped_at(campaign), {entry["name"]: entry for entry in plan["experiments"]}
    every: list[Candidate] = []
    for experiment in campaign.experiments:
        if not experiment.control and not experiment.part_of:
            data = ExperimentData(summary, entries[experiment.name])
            source = _Source(
                campaign, experiment, data, estimates, wall_times(data), stopped[experiment.name]
            )
            every += [*_holes(source, states), *_doublings(source, machine), *_repeats(source)]
    return choose(every, budget)


def choose(candidates: Sequence[Candidate], budget: float) -> list[Candidate]:
    """The candidates with the groups chosen whose values add up to the most within the budget; of
    sets alike the cheaper one. A knapsack, solved by CBC, which comes with PuLP."""
    import pulp  # some hundredths of a second, which plans are spared

    groups: dict[str, tuple[float, float]] = {}
    for each in candidates:
        if not each.refused:
            value, cost = groups.get(each.group, (0.0, 0.0))
            groups[each.group] = max(value, each.value), cost + each.node_hours
    names = [name for name, (_, cost) in groups.items() if cost <= budget]
    problem = pulp.LpProblem("advice", pulp.LpMaximize)
    taken = {name: problem.add_variable(f"x{i}", cat="Binary") for i, name in enumerate(names)}
    thrift = 1e-3 / budget
    problem += pulp.lpSum((groups[n][0] - thrift * groups[n][1]) * taken[n] for n in names)
    problem += pulp.lpSum(groups[n][1] * taken[n] for n in names) <= budget
    path = pulp.PULP_CBC_CMD.pulp_cbc_path  # its own name is deprecated in PuLP 3
    if names:
        problem.solve(pulp.COIN_CMD(path=path, msg=False, threads=1, timeLimit=20))
    chosen = {name for name in names if (taken[name].value() or 0) > 0.5}
    return [replace(each, chosen=not each.refused and each.group in chosen) for each in candidates]


@dataclass(frozen=True)
class _Source:
    """An experiment of which candidates are made."""

    campaign: Campaign
    experiment: Experiment
    data: ExperimentData
    estimates: Estimates
    walls: Mapping[int, float]
    stopped: Callable[[PointOf], str]

    def whole(self, point: Point) -> PointOf:
        return parameters_at(self.data.experiment, point.values)

    def words(self, point: PointOf) -> str:
        names = fold_axes(self.data.experiment)[0] or [self.data.scale]
        return " ".join(f"{name}={text_of(point[name])}" for name in names if name in point)

    def candidate(
        self, point: PointOf, measured: int, runs: int, seconds: float, value: float, reason: str,
        group: str = "",
    ) -> Candidate:  # fmt: skip
        """A candidate whose runs take at most so many seconds each."""
        name, limit_s = self.experiment.name, self.experiment.time_limit_minutes * 60
        words, refused = self.words(point), self.stopped(point)
        if seconds > limit_s:
            refused = f"may take {duration(seconds)}, the limit is {duration(limit_s)}"
        held = seconds + _beyond(self.campaign)
        hours = runs * self.campaign.site.nodes_for(point) * held / 3600
        return Candidate(
            name, point, words, measured, runs, hours, value, reason,
            group or f"{name} {words}", refused=refused,
        )  # fmt: skip

    def longest(self, point: Point) -> float:
        """Seconds of the longest run of a point, with a margin; 0 if none is known."""
        return UNSEEN * max((self.walls.get(row, 0.0) for row in point.rows.tolist()), default=0.0)


def _beyond(campaign: Campaign) -> float:
    """Seconds that a job holds its nodes beyond its program: as measured, else as the site says."""
    if campaign.site.slurm is None:
        return 0.0
    seen = overhead_s(read_jobs(campaign.results / JOBS))
    return campaign.site.slurm.startup_minutes * 60 if seen is None else seen


def _holes(source: _Source, states: Mapping[str, RunState]) -> Iterator[Candidate]:
    """Planned points of which runs have no result."""
    points: dict[int, list[Any]] = {}
    for run in source.experiment.runs:
        points.setdefault(id(run.point), []).append(run)
    for runs in points.values():
        lacking = [run for run in runs if states[run.run_id].status != Status.DONE]
        if not lacking:
            continue
        causes = {states[run.run_id].cause for run in lacking} - {"", None}
        reason = f"no result: {listed(sorted(map(str, causes)), 3)}" if causes else "no result yet"
        limit_s = source.experiment.time_limit_minutes * 60
        known = source.estimates.seconds(source.experiment, lacking[0])
        known = known or max(source.walls.values(), default=limit_s)
        yield source.candidate(
            lacking[0].point, len(runs) - len(lacking), len(lacking),
            min(UNSEEN * known, limit_s), 1.0, reason,
        )  # fmt: skip


def _doublings(source: _Source, machine: Any) -> Iterator[Candidate]:
    """The next doubling of each measured series that is not planned."""
    data, experiment = source.data, source.experiment
    if experiment.scaling not in OF_SAMPLES or data.scale not in data.axes:
        return
    points = data.points()
    groups = [[points[i] for i in group] for group in series_of(data, points)]
    planned = [source.whole(point) for point in points]
    for group in groups:
        there = [p for p in group if p.rows.size and p.source == "measured"]
        series = next(predictable(data, machine, [there]), None) if there else None
        if series is None:
            continue
        count = 2 * series.counts[-1]
        known = {int(p.values[data.scale]): source.whole(p) for p in series.points}
        point = derived(experiment, source.campaign.site, known, count)
        if point is None or point in planned:
            continue
        value, reason = 1.0, refusals(series.series, [count], data.scale)[0]
        if not reason:
            low, high = predict(series.series, [count]).interval()
            value = min(1.0, float(np.log2(high / low)[0]))
            ratio = float((high / low)[0])
            reason = f"next doubling: the predicted interval spans a factor of {ratio:.3g}"
        seconds = max(source.longest(each) for each in there) or experiment.time_limit_minutes * 60
        yield source.candidate(point, 0, 1, seconds, value, reason)


def _repeats(source: _Source) -> Iterator[Candidate]:
    """Repeats of the best two settings of a choice of which it is not clear which is better."""
    data = source.data
    measure = next((m for m in main_measures(data) if m in data.measures), None)
    points = [point for point in data.points() if point.source == "measured"]
    leaders = fold_axes(data.experiment)[0]
    for names in compared_parameters(data.experiment) if measure else ():
        for group in choice_groups(points, leaders, names):
            if measure and (pair := _unclear(data, [*group.values()], measure)):
                best, other, runs = pair
                labels = " or ".join(
                    ", ".join(text_of(point.values[name]) for name in names)
                    for point in (best, other)
                )
                reason = f"{', '.join(names)}: not clear whether {labels} is better"
                for point in (best, other):
                    whole = source.whole(point)
                    yield source.candidate(
                        whole, point.rows.size, runs, source.longest(point), 1.0, reason,
                        f"{source.experiment.name} {reason} {source.words(source.whole(best))}",
                    )  # fmt: skip


def _unclear(
    data: ExperimentData, points: Sequence[Point], measure: Measure
) -> tuple[Point, Point, int] | None:
    """The best and the second best point and the further runs of each that make their ratio clear;
    None if it is clear, if nothing tells the scatter, or if it takes more than ``MOST_REPEATS``."""
    values = [(point, data.repeats(point, measure)) for point in points]
    values = [(point, value) for point, value in values if value.size > 1 and (value > 0).all()]
    higher = data.quantities[measure[0]].better == "higher"
    values.sort(key=lambda pair: float(pair[1].mean()), reverse=higher)
    if len(values) < 2:
        return None
    (best, ours), (other, theirs) = values[:2]
    p = mean_ratio(data, [(best, other)], measure).chance
    apart = abs(math.log(float(ours.mean() / theirs.mean())))
    spread = math.sqrt(float(np.log(ours).var(ddof=1) + np.log(theirs).var(ddof=1)) / 2)
    if p < SIGNIFICANT or not apart or not spread:
        return None
    needed = math.ceil(2 * (_POWER * spread / apart) ** 2)
    more = needed - min(ours.size, theirs.size)
    return (best, other, more) if 0 < more <= MOST_REPEATS else None
