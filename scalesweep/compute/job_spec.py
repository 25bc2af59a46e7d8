"""The job specification: all that a job needs to run, as a file, so that it reads no campaign.

The launcher reads one small file, here and in a Slurm job, whose nodes wait meanwhile.
``workflow/schemas/order.yaml`` is the JSON Schema of it.
"""

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from scalesweep.core.errors import UserError
from scalesweep.core.files import is_whole, sealed, write_atomic

ORDER = "order.json"
# Network file systems look again after a few seconds.
CACHED_S = 10.0
_POLL_S = 0.2
JOB_FILE = "job.json"  # the Slurm jobs of the run (scalesweep.slurm.job_file)


class Asked(TypedDict):
    """What a Slurm job was asked for; None where that is not known."""

    nodes: int | None
    minutes: int | None  # time limit of the job
    limit_s: float | None  # of the program in it
    mem_mb: int | None  # per node


class PowerOrder(TypedDict):
    """How the energy of a run is sampled."""

    interval_s: float
    sources: Sequence[str]
    sysfs: str
    nodes: int


class CanaryOrder(TypedDict):
    """What is run before and after the program, to see what the machine does."""

    argv: list[str]  # with {out}, a folder that only the launcher knows
    results: int  # files that its processes leave of products and copies
    read: NotRequired[bool]  # whether each host reads a file
    ranks: NotRequired[int]  # of an allreduce; absent: there is none


class Patterns(TypedDict):
    """What the metrics of a foreign program are read from its logs with."""

    metrics: Sequence[Mapping[str, Any]]  # ``log_metrics.Metric``, as JSON
    digest: str


class ExtractOrder(Patterns):
    """How the logs of a foreign program are read."""

    srun_labels: bool
    work: Mapping[str, int]


class ProgramOrder(TypedDict):
    """What is started at a point, with nothing of a site in it: what the run's record says of it.

    The places of ``command`` and ``launch`` that a site fills are in braces; ``launch`` is None
    where the site's is used. ``files``: what the program is, by the words of the command.
    """

    command: list[str]
    env: dict[str, str]  # set by parameters and the experiment
    launch: dict[str, list[str]] | None
    files: dict[str, str]


class RunPlace(TypedDict):
    """Where a run stood in the order of its campaign."""

    seed: int | None  # None: as written
    position: int  # from 1
    of: int


class Order(TypedDict):
    """What the launcher needs to know of a run."""

    run_id: str
    profile: str
    benchmark: str
    version: int
    params: dict[str, Any]
    repeat: int
    site: str
    folder: str
    data: str | None
    node_local: str
    argv: list[str]  # with {run_file} and {out}, which only the launcher knows
    env: dict[str, str]
    prologue: list[str]
    time_limit_s: float
    asked: Asked | None  # None outside of Slurm
    power: NotRequired[PowerOrder | None]  # None: switched off
    canary: NotRequired[CanaryOrder]  # where it is asked for
    extract: NotRequired[ExtractOrder]  # of a foreign program
    program: NotRequired[ProgramOrder]  # not in an order of an earlier version
    order: NotRequired[RunPlace]
    # ``stamp_of`` the record that is there and is to be measured again; no other is replaced.
    replaces: NotRequired[str]
    study: NotRequired[str]  # folder of the user's study, whose git state is recorded
    # Nodes of its job that it has to itself, where it shares the job; known in the job only.
    hosts: NotRequired[list[str]]


def write_order(path: Path, order: Order) -> str:
    """Leave an order for the job that will be started next; returns its digest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not durable: there may be thousands, and the next call writes them again.
    text = sealed(order, indent=1)
    write_atomic(path, text, durable=False)
    return text.rpartition(': "')[2].partition('"')[0]


def await_order(path: Path, digest: str) -> Order:
    """Read the order of a run, as ``read_order`` does, when it is the one with this digest.

    A node of a cluster may see for some seconds what a network file system had before the job was
    submitted: no order, or that of an earlier job. Another one counts after ``CACHED_S``.
    """
    last = time.monotonic() + CACHED_S
    while True:
        with contextlib.suppress(OSError):
            if path.read_bytes().endswith(f': "{digest}"}}\n'.encode()):
                break
        if time.monotonic() >= last:
            break
        time.sleep(_POLL_S)
    return read_order(path)


def read_order(path: Path) -> Order:
    """Read the order of a run; raises UserError if there is none or it is not as it was written."""
    try:
        content = path.read_bytes()
        order: Order = json.loads(content)
        del order["digest"]  # type: ignore[typeddict-item]  # the seal
        lacking = sorted(Order.__required_keys__ - order.keys())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: cannot read the job specification ({error})") from None
    if not is_whole(content, needed=True):
        raise UserError(
            f"{path}: cannot read the job specification (it was changed: its digest differs)"
        )
    if lacking:
        raise UserError(f"{path}: cannot read the job specification (it lacks {lacking[0]!r})")
    return order
