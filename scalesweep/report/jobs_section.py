"""The report's section on Slurm jobs: what they asked for, and what they used of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from scalesweep.core.formatting import finite, listed, number
from scalesweep.slurm.job_table import Row, overhead_s, shapes_used
from scalesweep.slurm.sacct import FINAL, JobState

MAX_SHAPES = 100


def jobs_section(rows: Sequence[Row], link: str) -> dict[str, Any] | None:
    """What the template needs of the rows of jobs.csv, at ``link``; None if there are none."""
    if not rows:
        return None
    shapes = shapes_used(rows)
    waits = [row["wait_s"] for row in rows if row["wait_s"] is not None]
    known = [shape.asked_node_hours for shape in shapes if shape.asked_node_hours is not None]
    energies = [shape.energy_j for shape in shapes if shape.energy_j is not None]
    return {
        "link": link,
        "count": len(rows),
        "ends": _ends(rows),
        "partitions": sorted({row["partition"] for row in rows if row["partition"]}),
        "wait_s": median(waits) if waits else None,
        "wait_s_max": max(waits, default=None),
        "held_s": overhead_s(rows),
        "shapes": shapes[:MAX_SHAPES],
        "left_out": len(shapes[MAX_SHAPES:]),
        "jobs": sum(shape.jobs for shape in shapes),
        "asked_node_hours": sum(known) if len(known) == len(shapes) else None,
        "node_hours": sum(shape.node_hours for shape in shapes),
        "energy_j": sum(energies) if energies else None,
    }


def _ends(rows: Sequence[Row]) -> str:
    """How the jobs ended, the completed ones first."""
    over = [row for row in rows if row["state"] in FINAL]
    failed = Counter(
        row["cause"] or row["state"] for row in over if row["state"] != JobState.COMPLETED
    )
    completed = sum(row["state"] == JobState.COMPLETED for row in over)
    said = [f"{completed:,} completed", *(f"{n:,} {cause}" for cause, n in failed.most_common())]
    if len(over) < len(rows):
        said.append(f"{len(rows) - len(over):,} not finished yet")
    return listed(said, 12)


def _gib(size: Any) -> str:
    """Bytes as a number of GiB."""
    return number(size / 2**30) if finite(size) else "–"


def _megajoules(energy: Any) -> str:
    """Joules as a number of MJ."""
    return number(energy / 1e6) if finite(energy) else "–"


def _causes(causes: Mapping[str, int]) -> str:
    """Failed jobs by cause: ``1 TIMEOUT, 2 NODE_FAIL``; a dash if there are none."""
    return ", ".join(f"{count:,} {cause}" for cause, count in causes.items()) or "–"


FILTERS = {"gib": _gib, "megajoules": _megajoules, "causes": _causes}
