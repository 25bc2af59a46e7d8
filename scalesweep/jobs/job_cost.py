"""What the jobs of pending runs ask of Slurm and cost (plan.json, ``jobs``)."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import JobShapeEntry, PlanJobs, PlanUnpacked
from scalesweep.jobs.packing import Allocation, allocations, given_s, pack_minutes
from scalesweep.jobs.runtime_estimates import BASES, Estimates
from scalesweep.jobs.side_by_side import Task, timetable
from scalesweep.slurm.job_shape import Shape, of_slurm
from scalesweep.slurm.job_table import JOBS, Collected, overhead_s, overheads_s, spent


def spent_jobs(campaign: Campaign, budget: float | None = None) -> Collected:
    """The jobs of a campaign so far (``job_table.spent``), those of calls that were killed too.

    Raises UserError where there is a ``budget`` and nothing says what jobs have cost.
    """
    spent_ = spent(campaign.unique_runs(), campaign.runs_folder, campaign.results / JOBS)
    if spent_.blind and budget is not None:
        raise UserError(
            f"{campaign.file}: {budget:g} node-hours are the budget, and what was spent is not "
            f"known: {'; '.join(spent_.notes)}; submit again once the accounting answers, or "
            "without a budget"
        )
    return spent_


def cost_of_jobs(
    campaign: Campaign,
    shapes: Mapping[str, Shape],
    jobs: Sequence[dict[str, Any]],
    estimates: Estimates,
) -> PlanJobs:
    """What the jobs of pending runs will cost, equal requests as one (plan.json, ``jobs``).

    ``shapes``: what a job of each run alone would ask for. Node-hours: ``expected`` is of the
    estimates and of what jobs have held their nodes for beyond the program so far, null where an
    estimate is missing; ``limit`` is what the jobs can cost at most; ``spent`` is what all ``jobs``
    (rows of jobs.csv) have cost.
    """
    packed = allocations(campaign, shapes, estimates)
    lines = _lines(campaign, packed, jobs, estimates)
    cost: PlanJobs = {
        "shapes": lines,
        "node_hours_expected": _expected(lines),
        "node_hours_limit": sum(line["node_hours_limit"] for line in lines),
        "spent_node_hours": sum(row["node_hours"] or 0 for row in jobs),
        "budget_node_hours": campaign.budget_node_hours,
        "overhead_s": overhead_s(jobs),
        "overhead_jobs": sum(overhead_s([row]) is not None for row in jobs),
    }
    if (minutes := pack_minutes(campaign.site)) is not None:
        alone = cost["unpacked"] = _unpacked(campaign, shapes, jobs, estimates, minutes)
        alone["break_even_s"] = _break_even_s(
            cost["node_hours_expected"], alone["node_hours_expected"], shapes, jobs
        )
        of_shape: dict[str, list[Allocation]] = {}
        for job in packed:
            of_shape.setdefault(_sbatch_text(job.shape), []).append(job)
        for line in lines:
            alike = of_shape[line["sbatch"]]
            line["runs_each"] = [len(job.run_ids) for job in alike]
            if (at_once := max(job.at_once for job in alike)) > 1:
                line["at_once"] = at_once
    return cost


def _lines(
    campaign: Campaign,
    jobs_to_come: Sequence[Allocation],
    jobs: Sequence[dict[str, Any]],
    estimates: Estimates,
) -> list[JobShapeEntry]:
    """A line for each kind of request."""
    per_job, per_run = overheads_s(jobs)
    runs = campaign.unique_runs()
    groups: dict[Shape, list[Allocation]] = {}
    for job in jobs_to_come:
        groups.setdefault(job.shape, []).append(job)
    lines: list[JobShapeEntry] = []
    for shape, group in groups.items():
        known: list[float] = []  # of each job of which all runs are known
        for job in group:
            seconds = [s for i in job.run_ids if (s := estimates.seconds(*runs[i])) is not None]
            if len(seconds) < len(job.run_ids):
                continue
            each = per_job or 0.0
            if job.at_once > 1:
                # What such jobs have held beyond programs were idle nodes too, which are in the
                # timetable.
                nodes = [campaign.site.nodes_for(runs[i][1].point) for i in job.run_ids]
                tasks = [Task(n, s + each) for n, s in zip(nodes, seconds, strict=True)]
                known.append(timetable(shape.nodes, tasks).end_s)
                continue
            shared = len(seconds) > 1 and per_run is not None
            known.append(sum(seconds) + (len(seconds) * (per_run or 0.0) if shared else each))
        run_ids = [run_id for job in group for run_id in job.run_ids]
        alone = [s for run_id in run_ids if (s := estimates.seconds(*runs[run_id])) is not None]
        bases = {estimates.basis(*runs[run_id]) for run_id in run_ids}
        lines.append(
            {
                "sbatch": _sbatch_text(shape),
                "nodes": shape.nodes,
                "tasks": shape.tasks,
                "minutes": shape.minutes,
                "jobs": len(group),
                "runs": run_ids,
                "expected_s": median(alone) if alone else None,
                "basis": ", ".join(basis for basis in BASES if basis in bases and basis),
                "node_hours_expected": (
                    shape.nodes * sum(known) / 3600 if len(known) == len(group) else None
                ),
                "node_hours_limit": len(group) * shape.node_hours,
            }
        )
    lines.sort(key=lambda line: (line["nodes"], line["tasks"], line["minutes"], line["sbatch"]))
    return lines


def _expected(lines: Sequence[JobShapeEntry]) -> float | None:
    known = [share for line in lines if (share := line["node_hours_expected"]) is not None]
    return sum(known) if len(known) == len(lines) else None


def _unpacked(
    campaign: Campaign,
    shapes: Mapping[str, Shape],
    jobs: Sequence[dict[str, Any]],
    estimates: Estimates,
    minutes: int,
) -> PlanUnpacked:
    """What the same runs would cost in jobs of their own."""
    alone = [Allocation(shape, (run_id,)) for run_id, shape in shapes.items()]
    lines = _lines(campaign, alone, jobs, estimates)
    room_s = (minutes - of_slurm(campaign.site).startup_minutes) * 60
    return {
        "jobs": len(alone),
        "node_hours_expected": _expected(lines),
        "node_hours_limit": sum(line["node_hours_limit"] for line in lines),
        "minutes": minutes,
        "too_long": sum(given_s(campaign, shape) >= room_s for shape in shapes.values()),
    }


def _break_even_s(
    shared: float | None,
    alone: float | None,
    shapes: Mapping[str, Shape],
    jobs: Sequence[dict[str, Any]],
) -> float | None:
    """For how many seconds a job of one run must hold its nodes beyond the program, so that shared
    allocations (node-hours ``shared``, without them ``alone``) cost no more; None if not known.

    A second more of each job costs as many node-seconds as they have nodes; what has been measured
    of jobs so far (``overheads_s``) is in ``alone``, and 0 where nothing has.
    """
    nodes = sum(shape.nodes for shape in shapes.values())
    if shared is None or alone is None or not nodes:
        return None
    return max(0.0, (overheads_s(jobs)[0] or 0.0) + 3600 * (shared - alone) / nodes)


def _sbatch_text(shape: Shape) -> str:
    return " ".join(shape.sbatch_words())
