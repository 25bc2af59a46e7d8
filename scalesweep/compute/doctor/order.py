"""What the doctor is to look at where runs are: a file, as for runs, so that no campaign is read.

Standard library only.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

from scalesweep.compute.job_spec import Order
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic

ORDER, CHECKS, HERE = "order.json", "checks.jsonl", "here"
# What the benchmarks of a part start with: TensorFlow and Horovod, PyTorch, or nothing known.
HOROVOD, TORCH, PLAIN = "horovod", "torch", ""


class Part(TypedDict):
    """What benchmarks of one kind start with: a Python and a launcher of the site's."""

    needs: str  # HOROVOD, TORCH or PLAIN
    lacks: str  # why the site cannot start it, and what mends that; empty: it can
    software: Order
    ranks: Order
    needs_ranks: bool
    launch: str  # the key of the site file that has the launcher's words
    cpus_per_rank: int | None  # None: the launcher is asked for no binding


class DoctorOrder(TypedDict):
    """The checks of one call; ``folder``, below the results, is all that they write to."""

    folder: str
    site_file: str  # for the mend of what the site file says wrongly
    token: str  # content of the file HERE in the folder
    nodes: int
    parts: list[Part]
    horovod_on: list[str]  # of mpi, gloo, nccl: what the site asks for
    gpus_per_node: int
    in_slurm: bool


def suffix(needs: str, all_needs: Iterable[str]) -> str:
    """What the names of a part's checks end with where another part has checks of these names."""
    return f" ({needs})" if needs == TORCH and set(all_needs) - {TORCH} else ""


def needs_of(parts: Sequence[Part]) -> list[str]:
    """What each part needs."""
    return [part["needs"] for part in parts]


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
