"""What the doctor is to look at where runs are: a file, as for runs, so that no campaign is read.

Standard library only.
"""

import json
from pathlib import Path
from typing import TypedDict

from scalesweep.compute.job_spec import Order
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic

ORDER, CHECKS, HERE = "order.json", "checks.jsonl", "here"


class DoctorOrder(TypedDict):
    """The checks of one call; ``folder``, below the results, is all that they write to."""

    folder: str
    site_file: str  # for the mend of what the site file says wrongly
    token: str  # content of the file HERE in the folder
    nodes: int
    software: Order
    ranks: Order
    needs_horovod: bool
    needs_ranks: bool
    horovod_on: list[str]  # of mpi, gloo, nccl: what the site asks for
    gpus_per_node: int
    cpus_per_rank: int | None  # None: the launcher is asked for no binding
    in_slurm: bool


def write(order: DoctorOrder) -> Path:
    """Write the order into its folder; returns its path. Raises OSError."""
    path = Path(order["folder"], ORDER)
    write_atomic(path, json.dumps(order, indent=1) + "\n")
    return path


def read(path: Path) -> DoctorOrder:
    """Read an order; raises UserError."""
    try:
        order: DoctorOrder = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    return order
