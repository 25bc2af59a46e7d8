"""Which runs are planned, if what was measured decides.

A campaign may state two rules: repeats until points are precise, and counts that are left out
(``stop_below``). What is planned follows from the campaign and the records: nothing is kept of
decisions, so a call that was killed leaves nothing to mend.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from scalesweep.adaptive.repeats import most_repeats, planned_repeats, rule_entry
from scalesweep.adaptive.stops import StopSeries, held_runs, stop_series, without_stopped
from scalesweep.config.campaign import Campaign, with_control
from scalesweep.config.repeats import runs_of
from scalesweep.core.joined_experiments import axes_key
from scalesweep.core.plan_format import Plan, PlanExperiment, PlanRepeats
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import take_stock

if TYPE_CHECKING:
    from scalesweep.tables.points import ExperimentData


@dataclass(frozen=True)
class RunPlan:
    """A campaign with the runs that are planned so far.

    ``repeats``: what the plan says of experiments without a fixed number of them; ``series`` may be
    stopped; ``held`` are planned runs that wait until smaller counts of theirs have been measured.
    """

    campaign: Campaign
    repeats: Mapping[str, PlanRepeats] = field(default_factory=dict)
    series: tuple[StopSeries, ...] = ()
    held: frozenset[str] = frozenset()

    @property
    def grows(self) -> bool:
        """Whether there may be more runs, or fewer, by what is measured."""
        return bool(self.repeats or self.series)

    def enter(self, plan: Plan) -> None:
        """Enter into the plan how precise points are whose repeats are not fixed."""
        for entry in plan["experiments"]:
            if repeats := self.repeats.get(entry["name"]):
                there = {axes_key(entry, run["point"]) for run in entry["runs"]}
                points = [it for it in repeats["points"] if axes_key(entry, it["point"]) in there]
                entry["repeats"] = {**repeats, "points": points}


def plan_runs(campaign: Campaign) -> RunPlan:
    """The campaign, with any number of repeats, with those that are planned by what is on disk."""
    open_ones = [each for each in campaign.experiments if each.keys.until_precise]
    most = {each.name: most_repeats(each, campaign.runs_folder) for each in open_ones}
    widest = with_repeats(campaign, most)
    if not any(each.keys.until_precise or each.keys.stop_below for each in widest.experiments):
        return RunPlan(campaign)
    states = take_stock(widest, widest.unique_runs())
    entries, tables = _measured(widest, states)
    repeats, series = {}, list[StopSeries]()
    for each in widest.experiments:
        entry, data = entries[each.name], tables.get(each.name)
        if each.keys.until_precise:
            repeats[each.name] = planned_repeats(each, entry, states, data)
        if each.keys.stop_below:
            series += stop_series(each, entry, data)
    counts = {name: [it["planned"] for it in of["points"]] for name, of in repeats.items()}
    planned = without_stopped(with_repeats(widest, counts), series, states)
    return RunPlan(planned, repeats, tuple(series), held_runs(series, planned, states))


def with_repeats(campaign: Campaign, counts: Mapping[str, Sequence[int]]) -> Campaign:
    """The campaign with other numbers of repeats: of every point of these experiments.

    The control point is measured as often as it takes between all of them.
    """
    if not counts:
        return campaign
    experiments = {each.name: each for each in campaign.experiments if not each.control}
    for name, numbers in counts.items():
        benchmark, points = experiments[name].benchmark, experiments[name].points
        runs = runs_of(benchmark, points, map(range, numbers))
        experiments[name] = replace(experiments[name], runs=runs)
    made = with_control([*experiments.values()], campaign.keys, campaign.file)
    return replace(campaign, experiments=made)


def _measured(
    campaign: Campaign, states: Mapping[str, RunState]
) -> tuple[dict[str, PlanExperiment], dict[str, "ExperimentData"]]:
    """By experiment its entry in the plan and, once runs of it have finished and it has a rule,
    what they have measured, as tables are made of it."""
    ruled = {e.name: e for e in campaign.experiments if e.keys.until_precise or e.keys.stop_below}
    runs = dict.fromkeys(run.run_id for e in ruled.values() for run in e.runs)
    done = [run_id for run_id in runs if states[run_id].status == Status.DONE]
    if not done:
        return {e["name"]: e for e in build_plan(campaign, states)["experiments"]}, {}
    from scalesweep.tables.points import ExperimentData  # pandas
    from scalesweep.tables.summary import ROWS, build_summary

    folder, broken = campaign.runs_folder, dict[str, str]()
    summary = build_summary([folder / i / RECORD for i in done], broken, remember=folder / ROWS)
    # Of a damaged record nothing is known: the inventory says so.
    known = {i: s._replace(status=Status.FAILED) if i in broken else s for i, s in states.items()}
    entries = {e["name"]: e for e in build_plan(campaign, known)["experiments"]}
    for name, experiment in ruled.items():
        if experiment.keys.until_precise:
            entries[name]["repeats"] = rule_entry(experiment.keys.until_precise)
    return entries, {name: ExperimentData(summary, entries[name]) for name in ruled}


def new_runs(plan: RunPlan) -> set[str]:
    """The planned runs that were never tried and wait for no other."""
    states = take_stock(plan.campaign, plan.campaign.unique_runs())
    return {i for i, state in states.items() if state.status == Status.NEW and i not in plan.held}
