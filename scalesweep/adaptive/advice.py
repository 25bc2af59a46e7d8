"""What to measure next with so many node-hours: candidates, and the set that is worth most.

A candidate is a hole (a planned point without all its runs) or the next doubling of a series. Its
value is 1 for a hole; for a doubling the logarithm to base 2 of the upper over the lower bound of
what is predicted there, at most 1, which a measurement takes away.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.factors import fold_axes
from scalesweep.analysis.prediction import predict, refusals
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.site import Site
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import duration, finite, listed, text_of
from scalesweep.core.plan_format import Plan
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.core.status import Status
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.planning.machine import threads_per_core
from scalesweep.slurm.job_table import JOBS, overhead_s, read_jobs
from scalesweep.state.run_state import RunState
from scalesweep.tables.machine import whole_point
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.predictable import predictable, predicting_machine
from scalesweep.tables.scaling import series_of

PointOf = Mapping[str, Any]

# Of a run whose time is not known better: what it may take over the longest of its series.
UNSEEN = 1.25


@dataclass(frozen=True)
class Candidate:
    """Runs of a point that may be measured: ``measured`` so far, ``runs`` more, for ``reason``.

    ``chosen``: within the budget; ``refused``: why it cannot be.
    """

    experiment: str
    point: PointOf
    words: str
    measured: int
    runs: int
    node_hours: float
    value: float
    reason: str
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
    entries = {entry["name"]: entry for entry in plan["experiments"]}
    held_s, slurm = 0.0, campaign.site.slurm  # that a job holds its nodes beyond its program
    if slurm is not None:
        seen = overhead_s(read_jobs(campaign.results / JOBS))
        held_s = slurm.startup_minutes * 60 if seen is None else seen
    every: list[Candidate] = []
    for experiment in campaign.experiments:
        if not experiment.control and not experiment.part_of:
            data = ExperimentData(summary, entries[experiment.name])
            source = _Source(campaign, experiment, data, estimates, held_s)
            every += [*_holes(source, states), *_doublings(source, machine)]
    return choose(every, budget)


def choose(candidates: Sequence[Candidate], budget: float) -> list[Candidate]:
    """The candidates with those chosen whose values add up to the most within the budget; of sets
    alike the cheaper one. A knapsack, solved by CBC, which comes with PuLP."""
    import pulp  # some hundredths of a second, which plans are spared

    open_ones = [i for i, c in enumerate(candidates) if not c.refused and c.node_hours <= budget]
    problem = pulp.LpProblem("advice", pulp.LpMaximize)
    taken = {i: problem.add_variable(f"x{i}", cat="Binary") for i in open_ones}
    value = {i: candidates[i].value - 1e-3 * candidates[i].node_hours / budget for i in open_ones}
    problem += pulp.lpSum(value[i] * taken[i] for i in open_ones)
    problem += pulp.lpSum(candidates[i].node_hours * taken[i] for i in open_ones) <= budget
    path = pulp.PULP_CBC_CMD.pulp_cbc_path  # its own name is deprecated in PuLP 3
    if open_ones:
        problem.solve(pulp.COIN_CMD(path=path, msg=False, threads=1, timeLimit=20))
    chosen = {i for i in open_ones if (taken[i].value() or 0) > 0.5}
    return [replace(each, chosen=i in chosen) for i, each in enumerate(candidates)]


@dataclass(frozen=True)
class _Source:
    """An experiment of which candidates are made."""

    campaign: Campaign
    experiment: Experiment
    data: ExperimentData
    estimates: Estimates
    held_s: float

    def words(self, point: PointOf) -> str:
        names = fold_axes(self.data.experiment)[0] or [self.data.scale]
        return " ".join(f"{name}={text_of(point[name])}" for name in names if name in point)

    def candidate(
        self, point: PointOf, measured: int, runs: int, seconds: float, value: float, reason: str
    ) -> Candidate:
        """A candidate whose runs take at most so many seconds each."""
        name, limit_s = self.experiment.name, self.experiment.time_limit_minutes * 60
        hours = runs * self.campaign.site.nodes_for(point) * (seconds + self.held_s) / 3600
        long = f"may take {duration(seconds)}, the limit is {duration(limit_s)}"
        refused = long if seconds > limit_s else ""
        words = self.words(point)
        return Candidate(name, point, words, measured, runs, hours, value, reason, refused=refused)

    def longest(self, rows: Sequence[int]) -> float:
        """Seconds of the longest of the runs in these rows of the summary; 0 if none is known."""
        walls = self.data.summary["wall_s"].tolist()
        return max((walls[row] for row in rows if finite(walls[row])), default=0.0)


def _holes(source: _Source, states: Mapping[str, RunState]) -> Iterator[Candidate]:
    """Planned points of which runs have no result."""
    points: dict[int, list[Any]] = {}
    for run in source.experiment.runs:
        points.setdefault(id(run.point), []).append(run)
    for runs in points.values():
        lacking = [run for run in runs if not states[run.run_id].settled]
        if not lacking:
            continue
        causes = {states[run.run_id].cause for run in lacking} - {"", None}
        reason = f"no result: {listed(sorted(map(str, causes)), 3)}" if causes else "no result yet"
        limit_s = source.experiment.time_limit_minutes * 60
        known = source.estimates.seconds(source.experiment, lacking[0])
        seconds = UNSEEN * (known or source.longest([*source.data.row_of.values()]) or limit_s)
        if Cause.TIMEOUT not in causes:
            seconds = min(seconds, limit_s)
        done = sum(states[run.run_id].status == Status.DONE for run in runs)
        yield source.candidate(lacking[0].point, done, len(lacking), seconds, 1.0, reason)


def _doublings(source: _Source, machine: Any) -> Iterator[Candidate]:
    """The next doubling of each measured series that is not planned; none where ``stop_below``
    says how far series go."""
    data, experiment = source.data, source.experiment
    keys = experiment.keys
    if keys.scaling not in OF_SAMPLES or data.scale not in data.axes or keys.stop_below:
        return
    points = data.points()
    groups = [[points[i] for i in group] for group in series_of(data, points)]
    planned = [whole_point(data, point) for point in points]
    for group in groups:
        there = [p for p in group if p.rows.size and p.source == "measured"]
        series = next(predictable(data, machine, [there]), None) if there else None
        if series is None:
            continue
        count = 2 * series.counts[-1]
        known = {int(p.values[data.scale]): whole_point(data, p) for p in series.points}
        point = next_point(experiment, source.campaign.site, known, count)
        if point is None or point in planned:
            continue
        value, reason = 1.0, refusals(series.series, [count], data.scale)[0]
        if not reason:
            low, high = predict(series.series, [count]).interval()
            value = min(1.0, float(np.log2(high / low)[0]))
            ratio = float((high / low)[0])
            reason = f"next doubling: the predicted interval spans a factor of {ratio:.3g}"
        seconds = UNSEEN * source.longest([row for each in there for row in each.rows])
        limit_s = experiment.time_limit_minutes * 60
        yield source.candidate(point, 0, 1, seconds or limit_s, value, reason)


def next_point(
    experiment: Experiment, site: Site, known: Mapping[int, PointOf], count: int
) -> dict[str, Any] | None:
    """The point of a series at a count that is not planned; None where there can be none, or its
    threads would share cores more than those of the last.

    ``known``: points of the series by count, alike but for that and what is derived.
    """
    benchmark, derivation = experiment.benchmark, experiment.derivation
    if (scale := benchmark.scale) not in benchmark.parameters:
        return None
    last = known[max(known)]
    point = {**last, scale: count}
    set_here = point.keys() - derivation.derived.keys() - {scale}
    if any(of[name] != last[name] for of in known.values() for name in set_here):
        return None
    try:
        point, broken = derivation.at(point)
        if broken:
            return None
        benchmark.check_point(point, "")
        site.check_point(benchmark, point, "")
        loads = [threads_per_core(site, benchmark, of) or 0.0 for of in (point, last)]
        if loads[0] > max(1.0, loads[1]) and not site.oversubscribe:
            return None
    except (UserError, ValueError):
        return None
    return None if any(rule.when(point) for rule in experiment.keys.exclude) else point
