"""The allocations that a campaign's runs share, without runs or with the first repeats done."""

from collections.abc import Mapping
from typing import NamedTuple

from scalesweep.config.campaign import Campaign
from scalesweep.core.status import Status
from scalesweep.jobs.job_requests import shapes_for
from scalesweep.jobs.packing import Allocation, allocations
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm.job_shape import Shape
from scalesweep.state.run_state import RunState


class Allocated(NamedTuple):
    """What the allocations were made of, and they."""

    states: dict[str, RunState]
    estimates: Estimates
    shapes: Mapping[str, Shape]
    jobs: list[Allocation]


def allocated(campaign: Campaign, wall_s: float | None) -> Allocated:
    """Those of the runs that are left, where the first repeats have taken ``wall_s`` (None: none
    has run)."""
    states = dict.fromkeys(campaign.unique_runs(), RunState(Status.NEW))
    if wall_s is not None:
        for run_id, (_, run) in campaign.unique_runs().items():
            if run.repeat == 0:
                states[run_id] = RunState(Status.DONE, wall_s=wall_s, source="measured")
    estimates = Estimates(campaign, states)
    shapes = shapes_for(campaign, states, estimates) or {}
    return Allocated(states, estimates, shapes, allocations(campaign, shapes, estimates))
