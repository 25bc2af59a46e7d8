"""Which runs are planned where what was measured decides.

A campaign may state two rules: repeats until points are precise, and counts that are left out
(``stop``). ``plan_runs`` is the one place where they meet: the repeats that points need, without
the counts that are left out; of these some wait until smaller counts have been measured.

It follows from the runs on disk and from what looks have kept next to them; so a call that was
killed leaves nothing to mend. The Snakefile is parsed with this: only a decision imports NumPy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from scalesweep.core.plan_format import Plan
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.stock import take_stock
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

    @property
    def grows(self) -> bool:
        """Whether there may be more runs, or fewer, by what is measured."""
        return bool(self.points or self.series)

    @property
    def due(self) -> bool:
        """Whether something is to be decided."""
        return any(p.due for p in self.points) or any(s.due for s in self.series)

    def enter(self, plan: Plan) -> None:
        """Enter into the plan how precise points are whose repeats are not fixed."""
        for entry in plan["experiments"]:
            points = (point for point in self.points if point.experiment.name == entry["name"])
            if known := repeats_entry(points):
                entry["repeats"] = known


def plan_runs(campaign: Campaign, remember: bool = True) -> RunPlan:
    """The campaign with the runs that are planned by what is on disk now.

    ``remember`` as in ``run_state.scan``. ``campaign`` may have any number of repeats already.
    """
    campaign, points = plan_points(campaign, remember)
    planned, series = plan_stops(campaign, remember)
    if series:
        there = {id(run.point) for experiment in planned.experiments for run in experiment.runs}
        points = tuple(point for point in points if id(point.runs[0].point) in there)
    return RunPlan(planned, points, series, held_runs(series, planned))


def new_runs(plan: RunPlan) -> set[str]:
    """The planned runs that were never tried and wait for no other."""
    states = take_stock(plan.campaign, plan.campaign.unique_runs(), remember=False)
    return {i for i, state in states.items() if state.status == Status.NEW and i not in plan.held}


def look(campaign: Campaign) -> RunPlan:
    """Decide on everything that is due, and plan what is left to run.

    Raises OSError where a decision cannot be kept.
    """
    plan, folder = plan_runs(campaign), campaign.runs_folder
    if points := [point for point in plan.points if point.due]:
        keep_looks(campaign, {point.name: look_at_point(point, folder) for point in points})
        plan = plan_runs(campaign)
    if due := [series for series in plan.series if series.due]:
        from scalesweep.adaptive.stop_look import look_at_series  # NumPy

        keep_stops(campaign, {series.name: look_at_series(series, folder) for series in due})
        plan = plan_runs(campaign)
    return plan
