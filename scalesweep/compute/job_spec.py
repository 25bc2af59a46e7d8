"""The job specification: all that a job needs to run, as a file, so that it reads no campaign.

The launcher reads one small file, here and in a Slurm job, whose nodes wait meanwhile.
"""

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from scalesweep.core.errors import UserError
from scalesweep.core.files import content_digest, write_atomic

ORDER = "order.json"
# Network file systems look again after a few seconds.
CACHED_S = 10.0
_POLL_S = 0.2
# Where a program prints, and the files in its attempt's folder.
STREAMS = {"stdout": "stdout.log", "stderr": "stderr.log"}
LAUNCHER_LOG = "launcher.log"  # in a run's folder


class Meaning(TypedDict):
    """What a metric's number means."""

    unit: str
    better: str
    scope: str


class Asked(TypedDict):
    """What a Slurm job was asked for; None where that is not known."""

    nodes: int | None
    minutes: int | None  # time limit of the job
    limit_s: float | None  # seconds; time limit of the program
    mem_mb: int | None  # per node


class PowerOrder(TypedDict):
    """How the energy of a run is sampled."""

    interval_s: float  # seconds between samples
    sources: Sequence[str]
    sysfs: str  # where /sys is mounted
    nodes: int


class StampsOrder(TypedDict):
    """How the stamps that a foreign program prints of its steps are read."""

    source: str  # stdout, stderr, or files in the attempt's folder
    warmup: int  # steps that are left out first


class Patterns(TypedDict):
    """What the metrics of a foreign program are read from its logs with."""

    # entries of result.extract in benchmark.yaml (``log_metrics.Metric``, as JSON)
    metrics: Sequence[Mapping[str, Any]]
    digest: str
    reader: NotRequired[Mapping[str, Any]]  # declaration of the reader of its log
    # how the stamps of its steps are read; absent where it has none
    stamps: NotRequired[StampsOrder]
    work: NotRequired[Mapping[str, int]]  # of a run


class ProgramOrder(TypedDict):
    """What is started at a point, with nothing of a site in it: what the run's record says of it.

    The places of ``command`` and ``launch`` that a site fills are in braces; ``launch`` is None
    where the site's is used. ``files``: what the program is, by the words of the command.
    """

    command: list[str]  # words; {python}, {program:NAME} and the like stay in braces
    env: dict[str, str]  # variables that parameters and the experiment set
    launch: dict[str, list[str]] | None  # the benchmark's own launcher; null: the site's
    files: dict[str, str]  # word of the command -> path or name


class Start(TypedDict):
    """How programs are started: what is around their command."""

    env: dict[str, str]
    prologue: list[str]  # lines of shell before the command
    asked: Asked | None  # what the Slurm job was asked for; null outside of Slurm


class Order(Start):
    """What the launcher needs to know of a run."""

    run_id: str
    profile: str
    benchmark: str
    version: int
    params: dict[str, Any]  # value of every parameter
    repeat: int
    site: str
    folder: str  # the run's folder
    data: str | None  # folder of the data set
    node_local: str  # node-local scratch folder
    argv: list[str]  # the command; {run_file} and {out} are filled in by the launcher
    time_limit_s: float  # seconds
    srun_labels: NotRequired[bool]  # whether srun puts the rank in front of every line
    power: NotRequired[PowerOrder | None]  # how energy is sampled; null where it is switched off
    # how the metrics of a foreign program are read from its logs
    extract: NotRequired[Patterns]
    program: NotRequired[ProgramOrder]  # what is started at the point, with nothing of a site in it
    # where the run stood among all of the campaign when it was started: seed (null: in the order of
    # the file), position from 1, of so many
    order: NotRequired[Mapping[str, int | None]]
    container: NotRequired[str]  # image that the program runs in: a path, or what names it
    study: NotRequired[str]  # folder of the user's study, whose git state is recorded


def write_order(path: Path, order: Order) -> str:
    """Leave an order for the job that will be started next; returns its digest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not durable: there may be thousands, and the next call writes them again.
    text = json.dumps(order, indent=1) + "\n"
    write_atomic(path, text, durable=False)
    return content_digest(text.encode())


def read_order(path: Path, digest: str = "") -> Order:
    """Read the order of a run; raises UserError if there is none or it is not whole.

    ``digest``: of the order that is waited for. A node of a cluster may see for some seconds what a
    network file system had before: no order, or an earlier one, which counts after ``CACHED_S``.
    """
    last = time.monotonic() + CACHED_S
    while digest and time.monotonic() < last:
        with contextlib.suppress(OSError):
            if content_digest(path.read_bytes()) == digest:
                break
        time.sleep(_POLL_S)
    try:
        order: Order = json.loads(path.read_bytes())
        lacking = sorted(Order.__required_keys__ - order.keys())
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: cannot read the job specification ({error})") from None
    if lacking:
        raise UserError(f"{path}: cannot read the job specification (it lacks {lacking[0]!r})")
    return order
