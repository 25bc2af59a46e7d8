"""A call of ``ab`` or ``bisect``: campaign, points and repository, and measuring two commits."""

import math
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from types import FrameType
from typing import NoReturn

from scalesweep.ab.checkouts import BadCommitError, Checkout, Checkouts
from scalesweep.ab.commits import SHORT, Repository
from scalesweep.ab.measure import cancel_left, job_request, measure_here, measure_in_slurm
from scalesweep.ab.outcome import Measured
from scalesweep.ab.pairs import BASE, FOLDER, SIDES, Pairs
from scalesweep.ab.targets import Target, repository_of, targets_of
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, duration
from scalesweep.core.locks import claim, release
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.history.store import load
from scalesweep.jobs.job_cost import spent_jobs
from scalesweep.jobs.job_requests import Request, request_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.planning.plan import build_plan, hours
from scalesweep.slurm import commands
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import take_stock

_UNKNOWN = "an unknown time (nothing like it has been measured yet)"


@dataclass
class Cost:
    """Runs, their seconds one after the other (None: not known), node-seconds, and the node-hours
    that Slurm's limits allow at most."""

    runs: int = 0
    seconds: float | None = 0.0
    node_seconds: float = 0.0
    limit: float = 0.0

    def add(self, runs: int, each_s: float | None, nodes: int, limit: float) -> None:
        """Count so many runs of a point that take so long each."""
        self.runs += runs
        self.limit += limit
        if each_s is None or self.seconds is None:
            self.seconds = None
            return
        self.seconds += runs * each_s
        self.node_seconds += runs * each_s * nodes

    def text(self, cores_per_node: int, in_slurm: bool) -> str:
        """``36 runs, about 12 min, 3.2 core-hours``."""
        if not self.runs:
            return "nothing: all of it has been measured"
        if self.seconds is None:
            text = f"{counted(self.runs, 'run')}, {_UNKNOWN}"
        else:
            core_hours = self.node_seconds * cores_per_node / 3600
            text = (
                f"{counted(self.runs, 'run')}, about {duration(self.seconds)}, "
                f"{core_hours:.3g} core-hours"
            )
        if in_slurm:
            expected = None if self.seconds is None else self.node_seconds / 3600
            text += f"; {hours(expected)} node-hours expected, {hours(self.limit)} at most"
        return text


def history_seconds(campaign: Campaign, targets: Sequence[Target]) -> Mapping[str, float]:
    """Median seconds of the runs of the targets' points in the campaign's history, by the id of a
    point's first run; of those that are in it."""
    if campaign.history is None:
        return {}
    columns = ["site", "benchmark", "run_id", "started", "ended", "repeat"]
    try:
        rows = load(campaign.history.folder, columns).rows
    except UserError:
        return {}  # none yet
    rows = rows[rows["site"] == campaign.site.name].drop_duplicates(["run_id", "started"])
    seconds = (rows["ended"] - rows["started"]).dt.total_seconds()
    medians = {}
    for target in targets:
        ids = {target.run_id(repeat) for repeat in range(target.repeats)}
        own = seconds[rows["run_id"].isin(ids)].dropna()
        if len(own):
            medians[target.run_id(0)] = float(median(own))
    return medians


CHECKOUTS = "checkouts"  # folder in FOLDER
Say = Callable[[str], None]


class AbSession:
    """What both commands share; ``open`` takes the results folder and removes the worktrees."""

    def __init__(
        self, campaign: Campaign, options: Mapping[str, str], in_slurm: bool, say: Say
    ) -> None:
        """``options``: points, metric and repeats, as they were typed; ``in_slurm``: runs are
        jobs; ``say`` takes lines on the progress. Raises UserError."""
        self.campaign, self.in_slurm, self.say = campaign, in_slurm, say
        words = [options.get(name, "") for name in ("points", "metric", "repeats")]
        self.targets = targets_of(campaign, *words)
        self.repository: Repository = repository_of(campaign, self.targets)
        self._checkouts: Checkouts | None = None
        # Checkouts that have run a point, by the id of its first run.
        self._warm: set[tuple[Checkout, str]] = set()

    @cached_property
    def _states(self) -> Mapping[str, RunState]:
        return take_stock(self.campaign, self.campaign.unique_runs(), remember=False)

    @cached_property
    def estimates(self) -> Estimates:
        """Expected times, from the runs of the campaign's results folder."""
        return Estimates(self.campaign, self._states)

    @cached_property
    def entries(self) -> dict[str, PlanExperiment]:
        """The plan's entries of the experiments, by name."""
        plan = build_plan(self.campaign, self._states)
        return {entry["name"]: entry for entry in plan["experiments"]}

    @cached_property
    def _seconds(self) -> Mapping[str, float]:
        return history_seconds(self.campaign, self.targets)

    def pairs(self, base: str, new: str) -> Pairs:
        """The pairs of two commits."""
        return Pairs(self.campaign, self.repository, base, new)

    def cost(self, targets: Sequence[Target], runs: Mapping[str, int]) -> Cost:
        """What so many runs of each point cost (by the id of its first run)."""
        cost = Cost()
        for target in targets:
            group = target.run_id(0)
            if not (count := runs.get(group, 0)):
                continue
            run = Run(group, target.point, 0)
            seconds = self.estimates.seconds(target.experiment, run)
            seconds = self._seconds.get(group) if seconds is None else seconds
            nodes = self.campaign.site.nodes_for(target.point)
            limit = 0.0
            if self.in_slurm:
                request = self._request(target.experiment, run)
                limit = job_request(self.campaign, target.point, request, count).shape.node_hours
            cost.add(count, seconds, nodes, limit)
        return cost

    def _request(self, experiment: Experiment, run: Run) -> Request:
        return request_for(self.campaign, experiment, run, self.estimates)

    def cost_text(self, cost: Cost) -> str:
        """A cost in words."""
        return cost.text(self.campaign.site.cores_per_node, self.in_slurm)

    def check(self, cost: Cost) -> None:
        """Raise UserError where Slurm, or the campaign's budget, does not allow what is planned."""
        if not self.in_slurm:
            return
        commands.check_commands()
        for target in self.targets:
            request = self._request(target.experiment, Run(target.run_id(0), target.point, 0))
            words = request.shape.sbatch_words()
            if why := commands.refusal(words, commands.PATIENCE_S):
                raise UserError(
                    f"{self.campaign.site.file}: slurm: refuses {' '.join(words)}: {why}"
                )
        budget = self.campaign.budget_node_hours
        if budget is not None:
            campaign = self.campaign
            rows = spent_jobs(campaign, budget).rows
            left = budget - sum(row["node_hours"] or 0 for row in rows)
            if cost.limit > left:
                raise UserError(
                    f"{campaign.file}: budget.node_hours: {hours(max(left, 0.0))} are left, "
                    f"this may take {hours(cost.limit)}; raise the budget, or measure fewer points "
                    "or repeats (--points, --repeats)"
                )

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have the results folder and the checkouts to itself; raises UserError if another has."""
        campaign = self.campaign
        _end_in_order()
        lock = claim(campaign.results)
        try:
            folder = campaign.results / FOLDER / CHECKOUTS
            track, site = campaign.track, campaign.site
            with Checkouts(self.repository, folder, track.build, site.prologue) as checkouts:
                self._checkouts = checkouts
                yield
        finally:
            self._checkouts = None
            release(lock)

    def measure(self, base: str, new: str, targets: Sequence[Target]) -> list[Measured]:
        """Measure what is missing of the pairs of two commits, and read all of them.

        A point at which a commit fails has a ``failure``. Raises BadCommitError naming the commit
        that cannot be built, or that fails where nothing else was measured, and UserError.
        """
        assert self._checkouts is not None
        pairs = self.pairs(base, new)
        if pairs.schedule(targets):
            checkouts: dict[str, Checkout] = {}
            for side, commit in zip(SIDES, (base, new), strict=True):
                log = self.campaign.results / FOLDER / f"build-{commit[:SHORT]}.log"
                letter = "a" if side == BASE else "b"
                checkouts[side] = self._checkouts.make(letter, commit, log)
            schedule = pairs.schedule(
                targets,
                {(s, group) for s in SIDES for at, group in self._warm if at is checkouts[s]},
            )
            groups = [planned.target.run_id(0) for planned in schedule]
            self._warm |= {
                (checkouts[planned.side], planned.target.run_id(0)) for planned in schedule
            }
            requests = {}
            for target in targets if self.in_slurm else ():
                if count := groups.count(target.run_id(0)):
                    run = Run(target.run_id(0), target.point, 0)
                    request = self._request(target.experiment, run)
                    requests[run.run_id] = job_request(self.campaign, target.point, request, count)
            if self.in_slurm:
                cancel_left(pairs.folder)
            runs = pairs.order_all(schedule, checkouts, requests)
            self.say(
                f"{base[:SHORT]} and {new[:SHORT]}: {counted(len(schedule), 'run')}, alternately"
            )
            if self.in_slurm:
                measure_in_slurm(pairs.folder, runs, requests, self.say)
            else:
                measure_here(runs, self.say)
        results = [
            Measured(pairs, target, self.entries[target.experiment.name]) for target in targets
        ]
        if not any(entry.base for entry in results):
            for entry in results:
                if entry.failure:
                    side, why = entry.failure
                    commit = base if side == BASE else new
                    raise BadCommitError(commit, f"fails at {entry.target.label}: {why}")
        return results


def more(target: Target, repeats: int) -> Target:
    """The same with so many pairs."""
    return replace(target, repeats=repeats)


def steps_of(commits: int) -> int:
    """Commits that a bisection of so many looks at."""
    return math.ceil(math.log2(commits)) if commits > 1 else 0


def _end_in_order() -> None:
    """Have a signal raise SystemExit, so that worktrees are removed; a second one does nothing."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for signal_number in numbers:
            signal.signal(signal_number, signal.SIG_IGN)
        print("error: interrupted: the next call goes on from here", file=sys.stderr)
        sys.exit(128 + number)

    for number in numbers:
        signal.signal(number, end)
