"""Which runs are planned, if what was measured decides.

A campaign may state two rules: repeats until points are precise, and counts that are left out
(``stop``). What is planned follows from the campaign and the records alone: nothing is kept of
decisions, so a call that was killed leaves nothing to mend.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scalesweep.adaptive.measured import Measured, measured
from scalesweep.adaptive.repeats import (
    RepeatedPoint,
    most_repeats,
    repeated_points,
    repeats_entry,
)
from scalesweep.adaptive.stops import StopSeries, held_runs, stop_series, without_stopped
from scalesweep.config.campaign import Campaign, with_repeats
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import take_stock


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

    def enter(self, plan: Plan) -> None:
        """Enter into the plan how precise points are whose repeats are not fixed."""
        for entry in plan["experiments"]:
            points = (point for point in self.points if point.experiment.name == entry["name"])
            if known := repeats_entry(points):
                entry["repeats"] = known


def plan_runs(campaign: Campaign) -> RunPlan:
    """The campaign, with any number of repeats, with those that are planned by what is on disk."""
    widest = _widest(campaign)
    ruled = [each for each in widest.experiments if each.until_precise or each.stop]
    if not ruled:
        return RunPlan(campaign)
    runs = {run.run_id: (experiment, run) for experiment in ruled for run in experiment.runs}
    states = take_stock(campaign, runs)
    return planned_runs(widest, states, measured(campaign.runs_folder, states))


def planned_runs(
    widest: Campaign, states: Mapping[str, RunState], known: Mapping[str, Measured]
) -> RunPlan:
    """What is planned of a campaign that has all repeats that it may have.

    ``states``: of the runs of experiments with a rule; ``known``: what they have measured.
    """
    open_ones = [experiment for experiment in widest.experiments if experiment.until_precise]
    points = {each.name: repeated_points(each, states, known) for each in open_ones}
    counts = {name: [len(point.runs) for point in mine] for name, mine in points.items()}
    campaign = with_repeats(widest, counts) if counts else widest
    stopping = [experiment for experiment in campaign.experiments if experiment.stop]
    series = tuple(each for of in stopping for each in stop_series(of, known))
    planned = without_stopped(campaign, series, states) if series else campaign
    held = held_runs(series, planned, states)
    there = {run.run_id for experiment in planned.experiments for run in experiment.runs}
    left = [point for mine in points.values() for point in mine if point.runs[0].run_id in there]
    return RunPlan(planned, tuple(left), series, held)


def _widest(campaign: Campaign) -> Campaign:
    """The campaign with every repeat that a point without a fixed number of them may have."""
    open_ones = [experiment for experiment in campaign.experiments if experiment.until_precise]
    if not open_ones:
        return campaign
    folder = campaign.runs_folder
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return with_repeats(campaign, {each.name: most_repeats(each, there) for each in open_ones})


def new_runs(plan: RunPlan) -> set[str]:
    """The planned runs that were never tried and wait for no other."""
    states = take_stock(plan.campaign, plan.campaign.unique_runs())
    return {i for i, state in states.items() if state.status == Status.NEW and i not in plan.held}
