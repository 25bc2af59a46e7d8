"""What the jobs of pending runs ask of Slurm and cost (plan.json, ``jobs``)."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from scalesweep.config.campaign import Campaign
from scalesweep.core.plan_format import JobShapeEntry, PlanJobs
from scalesweep.jobs.runtime_estimates import BASES, Estimates
from scalesweep.slurm.job_shape import Shape
from scalesweep.slurm.job_table import overhead_s


def cost_of_jobs(
    campaign: Campaign,
    shapes: Mapping[str, Shape],
    jobs: Sequence[dict[str, Any]] | None,
    estimates: Estimates,
) -> PlanJobs:
    """What the jobs of pending runs will cost, equal requests as one (plan.json, ``jobs``).

    ``shapes``: what a job of each run alone would ask for. Node-hours: ``expected`` is of the
    estimates and of what jobs have held their nodes for beyond the program so far, null where an
    estimate is missing; ``limit`` is what the jobs can cost at most; ``spent`` is what all ``jobs``
    (rows of jobs.csv) have cost; None: it is not known.
    """
    lines = _lines(campaign, shapes, jobs or (), estimates)
    expected = [line["node_hours_expected"] for line in lines]
    spent = (row["node_hours"] or 0 for row in jobs or ())
    return {
        "shapes": lines,
        "node_hours_expected": None if None in expected else sum(filter(None, expected)),
        "node_hours_limit": sum(line["node_hours_limit"] for line in lines),
        "spent_node_hours": math.nan if jobs is None else sum(spent),
        "budget_node_hours": campaign.keys.budget_node_hours,
    }


def _lines(
    campaign: Campaign,
    shapes: Mapping[str, Shape],
    jobs: Sequence[dict[str, Any]],
    estimates: Estimates,
) -> list[JobShapeEntry]:
    """A line for each kind of request."""
    each = overhead_s(jobs) or 0.0
    runs = campaign.unique_runs()
    groups: dict[Shape, list[str]] = {}
    for run_id, shape in shapes.items():
        groups.setdefault(shape, []).append(run_id)
    lines: list[JobShapeEntry] = []
    for shape, run_ids in groups.items():
        guesses = [estimates.estimate(*runs[run_id]) for run_id in run_ids]
        known = [seconds for seconds, _ in guesses if seconds is not None]
        bases = {basis for _, basis in guesses}
        expected = shape.nodes * (sum(known) + len(known) * each) / 3600
        lines.append(
            {
                "sbatch": " ".join(shape.sbatch_words()),
                "nodes": shape.nodes,
                "tasks": shape.tasks,
                "minutes": shape.minutes,
                "jobs": len(run_ids),
                "runs": run_ids,
                "expected_s": median(known) if known else None,
                "basis": ", ".join(basis for basis in BASES if basis in bases and basis),
                "node_hours_expected": expected if len(known) == len(run_ids) else None,
                "node_hours_limit": len(run_ids) * shape.node_hours,
            }
        )
    lines.sort(key=lambda line: (line["nodes"], line["tasks"], line["minutes"], line["sbatch"]))
    return lines
