"""Which runs are planned where what was measured decides: policies, composed in one order.

A campaign may state two: repeats until points are precise, and counts that are left out
(``stop``). ``plan_runs`` is the one place where they meet: the repeats that points need, without
the counts that are left out; of these some wait until smaller counts have been measured.

It follows from the runs on disk and from what looks have kept next to them; so a call that was
killed leaves nothing to mend. The Snakefile is parsed with this: only a decision imports NumPy.
"""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from scalesweep.adaptive.repeats import (
    KeptLook,
    RepeatedPoint,
    keep_looks,
    plan_points,
    repeats_entry,
)
from scalesweep.adaptive.stops import StopSeries, held_runs, keep_stops, plan_stops
from scalesweep.analysis.metrics import EPOCH_PHASES, column
from scalesweep.analysis.repeat_rule import MORE, WAITING, Look
from scalesweep.analysis.sequential import look_at
from scalesweep.config.campaign import Campaign
from scalesweep.core.plan_format import Plan, PlanExperiment
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.tables.summary import read_rows
from scalesweep.tables.summary_cache import Row


def look_at_point(point: RepeatedPoint, folder: Path) -> KeptLook:
    """What the finished repeats of a point say, of the metric that its experiment is about."""
    rule, asked = point.rule, point.asked
    done = [
        folder / run.run_id / RECORD
        for run, state in zip(point.runs, point.states, strict=True)
        if state.status == Status.DONE
    ]
    # One that is damaged, or of no use, has no value: the inventory says so.
    rows = [row for row in read_rows(done) if isinstance(row, Row)]
    metric, values = _values(rows, rule.metric, _preferred(point))
    seen = look_at(values, asked, rule.least, rule.most, rule.until)
    if not all(state.settled for state in point.states[:asked]):
        seen = Look(WAITING, seen.width, asked)
    asked += seen.state == MORE
    width = seen.width if math.isfinite(seen.width) else None
    return KeptLook(point.seen, asked, seen.state, width, seen.expected, metric)


def _preferred(point: RepeatedPoint) -> list[str]:
    """Metrics in the order in which one is chosen (as ``experiment.results``)."""
    main = point.experiment.main_metric
    return [*([main] if main else []), "total_throughput", *point.experiment.benchmark.metrics]


def _values(
    rows: Sequence[Row], named: str | None, preferred: Sequence[str]
) -> tuple[str, list[float]]:
    """A metric, and its finite values: the one that is named, or the first that rows have."""
    numbers: list[Mapping[str, float]] = [{**row.epochs, **row.plain} for row in rows]
    others = sorted({name for row in rows for name in row.meanings})
    for metric in [named] if named else [*preferred, *others]:
        # As in findings: epochs after the first one, where there are several.
        for phase in (*reversed(EPOCH_PHASES), "run"):
            name = column(metric, "mean", phase)
            values = [value for row in numbers if math.isfinite(value := row.get(name, math.nan))]
            if values:
                return metric, values
    return named or "", []


class Policy(Protocol):
    """A rule by which runs are planned, with what it is about now."""

    @property
    def due(self) -> bool:
        """Whether something was measured that nothing has been decided on."""
        ...

    @property
    def run_ids(self) -> Set[str]:
        """The runs that its decisions may be about: a look waits for them."""
        ...

    def decide(self) -> None:
        """Look at what was measured and keep what follows from it. Raises OSError."""
        ...

    def enter(self, entry: PlanExperiment) -> None:
        """Enter what is known into an experiment of the plan."""
        ...

    def lines(self) -> list[str]:
        """What was decided last, a line each."""
        ...


@dataclass(frozen=True)
class PrecisePoints:
    """Points that are measured until they are precise."""

    campaign: Campaign
    points: tuple[RepeatedPoint, ...]

    @property
    def due(self) -> bool:
        """Whether a point may get another repeat, or no more."""
        return any(point.due for point in self.points)

    @property
    def run_ids(self) -> Set[str]:
        """Every repeat that the points may have."""
        return {run.run_id for point in self.points for run in point.runs}

    def decide(self) -> None:
        """Look at each point whose runs have changed since."""
        from scalesweep.adaptive.policy import look_at_point  # NumPy

        folder = self.campaign.runs_folder
        looks = {point.name: look_at_point(point, folder) for point in self.points if point.due}
        keep_looks(self.campaign, looks)

    def enter(self, entry: PlanExperiment) -> None:
        """Enter how precise the experiment's points are."""
        points = (point for point in self.points if point.experiment.name == entry["name"])
        if known := repeats_entry(points):
            entry["repeats"] = known

    def lines(self) -> list[str]:
        """A line for each point that was looked at."""
        return [" ".join(map(str, (p.name, *p.look[1:]))) for p in self.points if p.look]


@dataclass(frozen=True)
class StopAtCount:
    """Series of which larger counts may be left out."""

    campaign: Campaign
    series: tuple[StopSeries, ...]

    @property
    def due(self) -> bool:
        """Whether a count may be the last one."""
        return any(series.due for series in self.series)

    @property
    def run_ids(self) -> Set[str]:
        """The runs of all counts."""
        scales = (scale for series in self.series for scale in series.scales)
        return {run.run_id for scale in scales for run in scale.runs}

    def decide(self) -> None:
        """Look at each series whose runs have changed since."""
        from scalesweep.adaptive.stop_look import look_at_series  # NumPy

        folder = self.campaign.runs_folder
        looks = {
            series.name: look_at_series(series, folder) for series in self.series if series.due
        }
        keep_stops(self.campaign, looks)

    def enter(self, entry: PlanExperiment) -> None:
        """Nothing: what is left out is excluded, with the reason."""

    def lines(self) -> list[str]:
        """A line for each series that was looked at."""
        looked_at = [series for series in self.series if series.kept]
        return [f"{s.name} {s.kept.reason or 'goes on'}" for s in looked_at if s.kept]


# In the order in which a look decides.
POLICIES: tuple[type, ...] = (PrecisePoints, StopAtCount)


@dataclass(frozen=True)
class RunPlan:
    """A campaign with the runs that are planned so far.

    ``points`` have no fixed number of repeats, ``series`` may be stopped; ``held`` are planned runs
    that wait until smaller counts of theirs have been measured.
    """

    campaign: Campaign
    points: tuple[RepeatedPoint, ...] = ()
    series: tuple[StopSeries, ...] = ()
    held: frozenset[str] = frozenset()

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Those that the campaign states, in the order of ``POLICIES``."""
        policies: list[Policy] = []
        if self.points:
            policies.append(PrecisePoints(self.campaign, self.points))
        if self.series:
            policies.append(StopAtCount(self.campaign, self.series))
        return tuple(policies)

    @property
    def due(self) -> bool:
        """Whether something is to be decided: there may be more runs then, or fewer."""
        return any(policy.due for policy in self.policies)

    @cached_property
    def looked_at(self) -> Set[str]:
        """Ids of all runs that looks may be about."""
        return {run_id for policy in self.policies for run_id in policy.run_ids}

    def enter(self, plan: Plan) -> None:
        """Enter into the plan what is known of points whose runs are not fixed."""
        for entry in plan["experiments"]:
            for policy in self.policies:
                policy.enter(entry)

    def lines(self) -> list[str]:
        """What was decided last, a line each."""
        return [line for policy in self.policies for line in policy.lines()]


def plan_runs(campaign: Campaign, remember: bool = True, begun: Set[str] = frozenset()) -> RunPlan:
    """The campaign with the runs that are planned by what is on disk now.

    ``remember`` as in ``run_state.scan``. ``campaign`` may have any number of repeats already.
    ``begun``: runs that this call has started, which are over.
    """
    campaign, points = plan_points(campaign, remember)
    planned, series = plan_stops(campaign, remember, begun)
    if series:
        there = {id(run.point) for experiment in planned.experiments for run in experiment.runs}
        points = tuple(point for point in points if id(point.runs[0].point) in there)
    return RunPlan(planned, points, series, held_runs(series, planned, begun))


def look(campaign: Campaign) -> RunPlan:
    """Decide on everything that is due, and plan what is left to run.

    Raises OSError where a decision cannot be kept.
    """
    plan = plan_runs(campaign)
    for kind in POLICIES:
        for policy in plan.policies:
            if isinstance(policy, kind) and policy.due:
                policy.decide()
                plan = plan_runs(campaign)
    return plan
