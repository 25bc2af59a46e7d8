"""A budget that is spent in rounds: measure, advise, measure (``spend`` of a campaign).

Which runs are planned follows from the runs that there are and from what was decided so far, which
is kept next to the runs: the first runs, then those of each decision. A decision
(``adaptive.spend_round``) is due when all planned runs have a result or have failed; so whatever
was killed or deleted in between, the next call goes on from what is on disk.

The budget is never exceeded: every run counts with what it took, and before that with its time
limit, at which the launcher ends it. A run whose limit does not fit is not planned.

The Snakefile is parsed with this, so it imports nothing heavy.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.config.budget import Spend
from scalesweep.config.campaign import Campaign, with_repeats
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.errors import UserError, choices
from scalesweep.core.files import digest_of
from scalesweep.core.plan_format import PlanRound, PlanSpend
from scalesweep.core.record import read_failure
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.core.status import Status
from scalesweep.jobs.dataset_staging import is_staged
from scalesweep.jobs.job_requests import LEAST_LIMIT_S, canary_s, longest_s, request_for
from scalesweep.jobs.run_spec import data_folder
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm.job_identity import logs_of
from scalesweep.slurm.job_shape import staging_shape
from scalesweep.state.run_state import RunState
from scalesweep.state.sealed_json import read_sealed, write_sealed
from scalesweep.state.stock import take_stock

# The first counts of a series: so many, over a factor of at least ``APART``.
FIRST, APART = 3, 4
# Limits of runs that a round decides on, over the upper bound of their predicted time.
MARGIN = 1.5

DECISIONS = ".spend.json"  # in the folder of a site's runs
_FORMAT = 1


class Decision(NamedTuple):
    """Runs of one point that a round decided on.

    ``repeats``: their numbers; ``question``: what they narrow most, from a ``now`` to an expected
    ``after`` (natural logarithms of the upper over the lower bound); ``limit_s``: of each run;
    ``node_hours``: of all, at most.
    """

    round: int
    experiment: str
    point: Mapping[str, Any]
    repeats: Sequence[int]
    question: str
    now: float
    after: float
    limit_s: float
    node_hours: float


@dataclass(frozen=True)
class Kept:
    """What is kept next to the runs: decisions, and why no more are made.

    ``seen``: digest of the runs at which the end was found; another one makes a new decision due.
    ``billed``: by run the node-hours of all of its jobs by Slurm's accounting, with the state that
    it was in then (``bill_key``); ``other``: those of jobs that are of no run, which stage data.
    """

    decisions: tuple[Decision, ...] = ()
    ended: str = ""
    seen: str = ""
    billed: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    other: float = 0.0


@dataclass(frozen=True)
class Spending:
    """A campaign with the runs that are planned so far, and its account in node-hours.

    ``campaign``: with these runs alone; ``widest``: with every run of the file too, among which the
    next ones are chosen. ``spent``: of finished runs and failed attempts; ``reserved``: of planned
    runs at most; ``cut``: runs that do not fit; ``costs``: what each finished run took.
    """

    rule: Spend
    campaign: Campaign
    widest: Campaign
    kept: Kept
    spent: float
    reserved: float
    cut: tuple[str, ...]
    costs: Mapping[str, float]
    seen: str
    waits: bool  # whether planned runs have not been tried yet
    governed: frozenset[str] = field(default_factory=frozenset)

    @property
    def left(self) -> float:
        """Node-hours that nothing is planned for."""
        return self.rule.budget - self.spent - self.reserved

    @property
    def ended(self) -> str:
        """Why nothing more is decided, as things are; empty while it goes on."""
        return self.kept.ended if self.kept.seen == self.seen else ""

    @property
    def due(self) -> bool:
        """Whether the next round is to be decided on."""
        return not self.waits and not self.ended

    @property
    def run_ids(self) -> set[str]:
        """The planned runs: a round waits for those of all experiments."""
        return set(self.campaign.unique_runs())


@dataclass(frozen=True)
class Rounds:
    """A campaign with the runs that were chosen so far, before any account is taken; fields as in
    ``Spending``."""

    rule: Spend
    campaign: Campaign
    widest: Campaign
    kept: Kept
    governed: frozenset[str]

    def widened(self, campaign: Campaign) -> Campaign:
        """This campaign with every run that may be chosen in rounds too."""
        wide = {
            experiment.name: experiment
            for experiment in self.widest.experiments
            if experiment.name in self.governed
        }
        experiments = tuple(
            wide.get(experiment.name, experiment) for experiment in campaign.experiments
        )
        return replace(campaign, experiments=experiments)


def held_hours(campaign: Campaign, point: Mapping[str, Any], seconds: float) -> float:
    """Node-hours of a run whose program takes so long: with what a job takes beyond it."""
    site = campaign.site
    seconds += canary_s(campaign, point)
    if site.slurm is not None:
        seconds = 60 * math.ceil(seconds / 60 + site.slurm.startup_minutes)
    return site.nodes_for(point) * seconds / 3600


def limit_of(expected_s: float, experiment: Experiment) -> float:
    """The time limit of a run that is expected to take at most so long."""
    limit_s = max(MARGIN * expected_s, LEAST_LIMIT_S)
    return min(limit_s, experiment.time_limit_minutes * 60)


def plan_rounds(campaign: Campaign) -> Rounds | None:
    """The campaign with the first runs, and those that rounds have chosen; None where its budget is
    not adaptive.

    Raises UserError for a target that is not an experiment.
    """
    whole = campaign.whole or campaign
    if whole.spend is None:
        return None
    names = [e.name for e in whole.experiments if not e.control and not e.part_of]
    asked = whole.spend.target.split()[:1]
    if asked and asked[0] not in names:
        raise UserError(
            f"{whole.file}: budget.target: {asked[0]!r} is not an experiment of this campaign; "
            + choices(asked[0], names)
        )
    kept = read_decisions(whole)
    there = _names(whole.runs_folder)
    governed = frozenset(
        experiment.name for experiment in whole.experiments if _is_governed(experiment, whole.spend)
    )
    planned: dict[str, tuple[Run, ...]] = {}
    widest, limits = [], {}
    for experiment in whole.experiments:
        if experiment.name not in governed:
            widest.append(experiment)
            continue
        mine = [decision for decision in kept.decisions if decision.experiment == experiment.name]
        known = {run.run_id: run for run in experiment.runs}
        points = {experiment.benchmark.identity_of(point): point for point in experiment.points}
        added: dict[str, Run] = {}
        for decision in mine:
            for run in _runs(experiment, decision, points):
                limits[run.run_id] = decision.limit_s
                added[run.run_id] = known.get(run.run_id, run)
        first = _first_points(whole, experiment, whole.spend.budget)
        started = [run for run in experiment.runs if id(run.point) in first or run.run_id in there]
        planned[experiment.name] = tuple(({run.run_id: run for run in started} | added).values())
        widest.append(_with_runs(experiment, tuple((known | added).values())))
    wide = replace(whole, experiments=tuple(widest), whole=whole, limits=limits)
    narrow = replace(wide, experiments=tuple(
        _with_runs(experiment, planned.get(experiment.name, experiment.runs))
        for experiment in widest
    ))  # fmt: skip
    # The control point is measured between all others, however many these are.
    return Rounds(whole.spend, with_repeats(narrow, {}), wide, kept, governed)


def take_account(
    rounds: Rounds, chosen: Campaign, campaign: Campaign, widest: Campaign, remember: bool = True
) -> Spending:
    """The account of the planned runs; those that do not fit into the budget are left out.

    ``chosen``: with all runs that were chosen, of which every attempt counts; ``campaign``: with
    those of them that no ``stop`` leaves out, for which node-hours are reserved; ``widest`` as in
    ``Spending``. ``remember`` as in ``run_state.scan``. Raises UserError if not one run fits.
    """
    rule = rounds.rule
    runs = chosen.unique_runs()
    states = take_stock(chosen, runs, remember=remember)
    limits, kept = dict(chosen.limits), rounds.kept
    spent, costs = kept.other, {}
    for run_id, (experiment, run) in runs.items():
        state, limit_s = states[run_id], chosen.limit_s(experiment, run_id)
        folder = chosen.runs_folder / run_id
        failed = _failed(folder, state)
        if failed and run_id in limits:
            limits[run_id] = limit_s * 2**failed
        took, known = 0.0, kept.billed.get(run_id)
        if known is not None and known[0] == bill_key(folder, state):
            took = known[1]
        else:
            for attempt in range(failed):
                longer = min(limit_s * 2**attempt, longest_s(chosen, experiment))
                spent += held_hours(chosen, run.point, longer)
            if state.status == Status.DONE:
                took = held_hours(chosen, run.point, state.wall_s or 0.0)
        spent += took
        if state.status == Status.DONE:
            costs[run_id] = took
    campaign, widest = replace(campaign, limits=limits), replace(widest, limits=limits)
    planned = campaign.unique_runs()
    reserved, cut = _reserve(campaign, states, spent, rule.budget)
    left_out = set(cut)
    experiments = tuple(_without_runs(experiment, left_out) for experiment in campaign.experiments)
    campaign = replace(
        campaign, experiments=tuple(experiment for experiment in experiments if experiment.runs)
    )
    tried = [[i, s.status, s.stamp] for i, s in states.items() if s.status != Status.NEW]
    waits = any(states[i].status == Status.NEW and i not in left_out for i in planned)
    stops = [experiment.stop.text for experiment in campaign.experiments if experiment.stop]
    seen = digest_of([rule.budget, rule.until, rule.target, tried, *stops])
    return Spending(
        rule, campaign, widest, kept, spent, reserved, tuple(cut), costs, seen, waits,
        rounds.governed,
    )  # fmt: skip


def keep_decisions(campaign: Campaign, kept: Kept) -> None:
    """Keep what was decided next to the runs. Raises OSError."""
    path = campaign.runs_folder / DECISIONS
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "decisions": [decision._asdict() for decision in kept.decisions],
        "ended": kept.ended,
        "seen": kept.seen,
        "billed": kept.billed,
        "other": kept.other,
    }
    write_sealed(path, _FORMAT, content)


def read_decisions(campaign: Campaign) -> Kept:
    """What was decided so far; nothing where it was not kept, or not whole.

    What those runs cost is counted all the same, as far as the campaign names them.
    """
    try:
        kept = read_sealed(campaign.runs_folder / DECISIONS, _FORMAT)
        if not kept:
            return Kept()
        decisions = tuple(Decision(**fields) for fields in kept["decisions"])
        bills = kept.get("billed", {}).items()
        billed = {run_id: (str(key), float(hours)) for run_id, (key, hours) in bills}
        other = float(kept.get("other", 0.0))
        return Kept(decisions, str(kept["ended"]), str(kept["seen"]), billed, other)
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return Kept()


def _reserve(
    campaign: Campaign, states: Mapping[str, RunState], spent: float, budget: float
) -> tuple[float, list[str]]:
    """What the runs to come may cost, with the data sets that are made for them, in node-hours; and
    those that do not fit. Raises UserError if none does."""
    runs, estimates = campaign.unique_runs(), Estimates(campaign, states)
    reserved, cut, first = 0.0, [], 0.0
    staged: set[str | None] = {None}
    for run_id, (experiment, run) in runs.items():
        if states[run_id].settled:
            continue
        most = _at_most(campaign, experiment, run, states[run_id], estimates)
        if (folder := _to_stage(campaign, experiment, run)) not in staged:
            most += staging_shape(campaign.site).node_hours
        first = first or most
        if spent + reserved + most > budget:
            cut.append(run_id)
        else:
            reserved += most
            staged.add(folder)
    if len(cut) == len(runs):
        raise UserError(
            f"{campaign.file}: budget.node_hours: {budget:g}: not one run fits: the "
            f"first may take up to {first:.3g} node-hours (nodes times time_limit_minutes); raise "
            "the budget or lower time_limit_minutes"
        )
    return reserved, cut


def _at_most(
    campaign: Campaign, experiment: Experiment, run: Run, state: RunState, estimates: Estimates
) -> float:
    """Node-hours that the next attempt of a run may cost: with Slurm what its job will ask for."""
    if campaign.site.slurm is None:
        limit_s = campaign.limit_s(experiment, run.run_id)
        return held_hours(campaign, run.point, limit_s)
    folder = campaign.runs_folder / run.run_id
    failure = read_failure(folder) if state.status == Status.FAILED else None
    return request_for(campaign, experiment, run, estimates, failure).shape.node_hours


def _to_stage(campaign: Campaign, experiment: Experiment, run: Run) -> str | None:
    """Folder of the data set that a job has to make before a run; None for none."""
    if campaign.site.slurm is None or is_staged(campaign, experiment, run.point):
        return None
    return data_folder(campaign, experiment.benchmark, run.point)


def bill_key(folder: Path, state: RunState) -> str:
    """What a run's bill is of: its state, and how often it was tried."""
    tried = sum(name.startswith("attempt-") for name in _names(folder))
    return f"{state.status} {state.stamp} {tried}"


def _names(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir()}
    except OSError:
        return set()


def _is_governed(experiment: Experiment, rule: Spend) -> bool:
    """Whether rounds decide on an experiment's runs: it is asked, and has no other rule.

    Not on those of several benchmarks: what is asked there is not what one of them tells.
    """
    asked = rule.target.split()[:1] in ([], [experiment.name])
    ruled = experiment.control or experiment.part_of or experiment.until_precise is not None
    return asked and not ruled


def _first_points(campaign: Campaign, experiment: Experiment, budget: float) -> set[int]:
    """The points (by identity of the object) that an experiment begins with: those at the first
    counts, or all where none scales."""
    if experiment.scaling not in OF_SAMPLES or experiment.benchmark.scale not in experiment.axes:
        return {id(point) for point in experiment.points}
    scale_of = experiment.benchmark.scale_of
    counts = sorted({scale_of(point) for point in experiment.points})
    first = _far_counts(campaign, experiment, counts, budget) or _near_counts(experiment, counts)
    return {id(point) for point in experiment.points if scale_of(point) in first}


def _near_counts(experiment: Experiment, counts: Sequence[int]) -> Sequence[int]:
    """The smallest counts, over a factor of ``APART``; in strong scaling each apart from the one
    before it."""
    strong = experiment.scaling == "strong"
    first = list(counts[:1])
    for count in counts[1:]:
        least = APART * first[0 if not strong else -1]
        if len(first) < FIRST and (count >= least or not (strong or len(first) == FIRST - 1)):
            first.append(count)
    return first if len(first) == FIRST else counts  # a narrow grid: all of it


def _far_counts(
    campaign: Campaign, experiment: Experiment, counts: Sequence[int], budget: float
) -> Sequence[int]:
    """In strong scaling, where all counts cost about the same: the smallest, to which the others
    are compared, and the two largest neighbours that can be paid with it, at their limits; none
    where no two can, or larger ones may have to be left out."""
    if experiment.scaling != "strong" or experiment.stop:
        return ()
    limit_s, hours = experiment.time_limit_minutes * 60, dict.fromkeys(counts, 0.0)
    for run in experiment.runs:
        count = experiment.benchmark.scale_of(run.point)
        hours[count] += held_hours(campaign, run.point, limit_s)
    for lower, upper in reversed(list(pairwise(counts[1:]))):
        three = (counts[0], lower, upper)
        if upper >= APART * counts[0] and math.fsum(hours[count] for count in three) <= budget:
            return three
    return ()


def _runs(
    experiment: Experiment, decision: Decision, points: dict[str, Mapping[str, Any]]
) -> list[Run]:
    """The runs that a decision names; none of a point that the benchmark has no longer.

    ``points``: those of the experiment by identity, to which one of its own is added.
    """
    benchmark = experiment.benchmark
    if set(decision.point) != set(benchmark.parameters):
        return []
    point = dict(decision.point)
    same = points.setdefault(benchmark.identity_of(point), point)
    return [Run(benchmark.run_id(same, number), same, number) for number in decision.repeats]


def _with_runs(experiment: Experiment, runs: Sequence[Run]) -> Experiment:
    """An experiment with other runs, the points of these, and profiles of those points."""
    if list(runs) == list(experiment.runs):
        return experiment
    points = {experiment.benchmark.identity_of(run.point): run.point for run in runs}
    there = {id(run.point) for run in runs}
    profiles = tuple(run for run in experiment.profiles if id(run.point) in there)
    return replace(experiment, runs=runs, points=tuple(points.values()), profiles=profiles)


def _without_runs(experiment: Experiment, cut: Collection[str]) -> Experiment:
    """An experiment without these runs, profiled ones too."""
    kept = _with_runs(experiment, tuple(run for run in experiment.runs if run.run_id not in cut))
    profiles = tuple(run for run in kept.profiles if run.run_id not in cut)
    return replace(kept, profiles=profiles)


def _failed(folder: Path, state: RunState) -> int:
    """Attempts of a run that gave no result; those that were killed too.

    Not that of a job of Slurm of whose end nothing is known: it may be at work, left by a call that
    was killed, and what is reserved for the run is for that attempt.
    """
    tried = sum(name.startswith("attempt-") for name in _names(folder))
    failed = max(tried - (state.status == Status.DONE), 0)
    if failed and state.status != Status.DONE:
        jobs = [job_id for _, job_id, _ in logs_of(folder.parent, {folder.name})]
        last = (read_failure(folder) or {}).get("job_id") or 0
        failed = min(failed, len(jobs) - (max(jobs) > last)) if jobs else failed
    return failed


def costs_of(spending: Spending, runs: Iterable[str]) -> float:
    """What these runs took together, as far as they have finished."""
    return math.fsum(spending.costs.get(run_id, 0.0) for run_id in runs)


def spend_entry(spending: Spending, name: str) -> PlanSpend:
    """The entry in the plan of an experiment whose points are chosen in rounds."""
    experiment = next(
        experiment for experiment in spending.widest.experiments if experiment.name == name
    )
    benchmark = experiment.benchmark
    rounds: list[PlanRound] = []
    for decision in spending.kept.decisions:
        if decision.experiment == name:
            ids = [benchmark.run_id(decision.point, number) for number in decision.repeats]
            rounds.append(
                {
                    "round": decision.round,
                    "point": benchmark.scaled(decision.point),
                    "runs": len(ids),
                    "done": sum(run_id in spending.costs for run_id in ids),
                    "question": decision.question,
                    "now": decision.now,
                    "expected": decision.after,
                    "node_hours": decision.node_hours,
                    "took": costs_of(spending, ids),
                }
            )
    return {
        "budget": spending.rule.budget,
        "spent": spending.spent,
        "reserved": spending.reserved,
        "until": spending.rule.until,
        "target": spending.rule.target,
        "ended": spending.ended,
        "rounds": rounds,
    }
