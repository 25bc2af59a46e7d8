"""How much the next job of a run asks for: from estimates, and from how its last job ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.compute.job_spec import Asked
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.causes import Given, NextJob, facts_of
from scalesweep.core.record import read_failure
from scalesweep.jobs.runtime_estimates import SAME_POINT, Estimates
from scalesweep.slurm.job_end import BY_SLURM
from scalesweep.slurm.job_shape import MB_PER_GB, Shape, of_slurm, run_shape
from scalesweep.state.run_state import RunState

# A limit below this is not worth asking for: Slurm counts in minutes.
LEAST_LIMIT_S = 60.0
MARGIN = 2.0  # times the time of finished runs: the limit of the next


@dataclass(frozen=True, slots=True)
class Request:
    """A job's shape, and the limit of the program inside it in seconds."""

    shape: Shape
    limit_s: float

    def asked(self) -> Asked:
        """What is kept with a failure, for the next request to start from."""
        return {
            "nodes": self.shape.nodes,
            "minutes": self.shape.minutes,
            "limit_s": self.limit_s,
            "mem_mb": self.shape.mem_mb,
        }


def request_for(
    campaign: Campaign,
    experiment: Experiment,
    run: Run,
    estimates: Estimates,
    failure: Mapping[str, Any] | None = None,
) -> Request:
    """The request of a run's next job.

    The limit is the experiment's, or, where runs of the same point have finished, their time times
    ``MARGIN``, if that is less. No other estimate is as sure as what the user has said.
    After a ``failure`` (failure.json of the last job) it starts from what that one asked for: twice
    the limit or the memory, where the cause asks for more (``core.causes``). Raises UserError where
    the site cannot hold the point.
    """
    site, slurm = campaign.site, of_slurm(campaign.site)
    limit_s = experiment.time_limit_minutes * 60
    expected_s, basis = estimates.estimate(experiment, run)
    if expected_s is not None and basis == SAME_POINT:
        limit_s = min(limit_s, max(LEAST_LIMIT_S, expected_s * MARGIN))
    mem_mb = None
    asked = (failure or {}).get("asked") or {}
    if failure and asked.get("limit_s") is not None and "mem_mb" in asked:
        limit_s = max(limit_s, asked["limit_s"])
        next_job = facts_of(failure["cause"]).next_job
        if next_job is NextJob.MORE_TIME:
            given_s = asked["limit_s"]
            if BY_SLURM in failure:
                # Slurm counts in minutes, and had given the program more than its own limit.
                job_s = 60 * ((asked.get("minutes") or 0) - slurm.startup_minutes)
                given_s = max(given_s, job_s)
            limit_s = min(2 * given_s, longest_s(campaign, experiment))
        mem_mb = asked["mem_mb"]
        if next_job is NextJob.MORE_MEMORY and mem_mb is not None:
            mem_mb = min(2 * mem_mb, _largest_mb(campaign))
    shape = run_shape(
        site, run.point, limit_s, experiment.keys.memory_gib_per_rank,
        mem_mb, experiment.keys.constraint, experiment.alone,
    )  # fmt: skip
    return Request(shape, limit_s)


def may_mend(
    campaign: Campaign, experiment: Experiment, cause: str, asked: Asked, attempt: int
) -> bool:
    """Whether another job, asked for as ``request_for`` would, may end better than the last.

    ``attempt`` is the number of that one, from 1. A hang costs all nodes their whole limit, and
    more time does not cure it. But many are chance (a race at the start, a network or file system
    that stalls): the same again, once.
    """
    match facts_of(cause).next_job:
        case NextJob.SAME_ONCE:
            return attempt == 1
        case NextJob.MORE_TIME:
            most_s = longest_s(campaign, experiment)
            return asked["limit_s"] is not None and asked["limit_s"] < most_s
        case NextJob.MORE_MEMORY:
            return asked["mem_mb"] is not None and asked["mem_mb"] < _largest_mb(campaign)
        case next_job:
            return next_job is not NextJob.NONE


def nodes_at_fault(failure: Mapping[str, Any] | None) -> str:
    """The nodes without which a run is tried again (a list), by failure.json: that of the rank that
    failed first, or all of the job; none if the failure is not a node's."""
    failure = failure or {}
    if facts_of(str(failure.get("cause"))).next_job is not NextJob.ELSEWHERE:
        return ""
    return str(failure.get("first_nodes") or failure.get("nodes") or "")


def ended_so(cause: str, detail: str, asked: Asked) -> str:
    """How a job ended: the cause, and what it had been given of what ran out."""
    used_up = facts_of(cause).used_up
    if used_up is Given.TIME and asked["limit_s"] is not None:
        return f"{cause} after {asked['limit_s']:g} s"
    if used_up is Given.MEMORY and asked["mem_mb"] is not None:
        return f"{cause} with {asked['mem_mb']:,} MiB per node"
    return f"{cause}: {detail}" if detail else cause


def tried_again(cause: str, request: Request, avoided: Sequence[str] = ()) -> str:
    """What the next job of a run gets that ended with ``cause``; ``avoided``: nodes that it is kept
    off."""
    next_job = facts_of(cause).next_job
    if next_job is NextJob.MORE_TIME:
        return f"trying again with {request.limit_s:g} s"
    if next_job is NextJob.MORE_MEMORY:
        return f"trying again with {request.shape.mem_mb:,} MiB"
    where = f" without {', '.join(avoided)}" if avoided else ""
    return f"trying again{where}"


def shapes_for(
    campaign: Campaign, states: Mapping[str, RunState], estimates: Estimates
) -> dict[str, Shape] | None:
    """What the next job of each pending run will ask for; None on a site without Slurm."""
    if campaign.site.slurm is None:
        return None
    folder = campaign.runs_folder
    return {
        run_id: request_for(campaign, *planned, estimates, read_failure(folder / run_id)).shape
        for run_id, planned in campaign.unique_runs().items()
        if not states[run_id].settled
    }


def longest_s(campaign: Campaign, experiment: Experiment) -> float:
    """The most that a run of an experiment may ever be given, in seconds."""
    limit, site = experiment.time_limit_minutes, campaign.site
    longest = site.slurm and (site.slurm.max_minutes or 4 * site.time_limit_minutes)
    return 60 * max(limit, longest or 0)


def _largest_mb(campaign: Campaign) -> int:
    return int((campaign.site.memory_gib_per_node or 0) * MB_PER_GB)
