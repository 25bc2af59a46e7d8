"""The files of a pack: several short runs that one process launches, in a Slurm job or here.

``<name>.json`` describes it, ``<name>.begun`` has each of its runs, noted before it begins: so it
is known later which of them a killed job was at work on. ``<name>.stop`` is there once no further
one is to begin. ``scalesweep.compute.pack_launcher`` launches the runs.

Standard library only, as all that runs in a job.
"""

import json
import os
import time
from pathlib import Path
from typing import NotRequired, TypedDict

from scalesweep.core.files import digest_of, is_whole, read_json, sealed, write_atomic
from scalesweep.core.record import RECORD, read_failure

PACKS = ".packs"  # in the folder of a site's runs
LAUNCHER_LOG = "launcher.log"  # in a run's folder


class PackedRun(TypedDict):
    """A run of a pack: its folder below that of the runs (the id of a campaign's run), the digest
    of its order, and the most seconds that it may take.

    ``group``: once a run of it has failed, its others are left out. ``nodes``: those of the job
    that it takes, where runs on other ones may be measured at the same time.
    """

    run_id: str
    order: str
    needs_s: float
    group: NotRequired[str]
    nodes: NotRequired[int]


class Pack(TypedDict):
    """Several runs in their order; their job has ``given_s`` seconds (None: no limit), of which
    ``spare_s`` are left to its start and end."""

    runs: list[PackedRun]
    given_s: float | None
    spare_s: float


def pack_file(runs: Path, name: str) -> Path:
    """Where a pack of that name is described, in the folder of a site's runs."""
    return runs / PACKS / f"{name}.json"


def write_pack(runs: Path, pack: Pack) -> str:
    """Leave a pack for its job; returns its name. Raises OSError."""
    name = digest_of([pack, time.time_ns(), os.getpid()], 6)
    path = pack_file(runs, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, sealed(pack), durable=False)
    return name


def read_pack(runs: Path, name: str) -> Pack | None:
    """The pack of that name; None if there is none that is whole."""
    try:
        content = pack_file(runs, name).read_bytes()
        pack: Pack = json.loads(content)
        whole = is_whole(content, needed=True) and {"runs", "given_s", "spare_s"} <= pack.keys()
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return pack if whole else None


def begun(runs: Path, name: str) -> list[str]:
    """Ids of the runs of a pack that its job has begun, in order; one twice if it was requeued."""
    return [run_id for run_id, _ in _begun(runs, name)]


def nodes_of(runs: Path, name: str, run_id: str) -> str:
    """The nodes of its job (``a,b``) that a run of a pack last had to itself; empty if it had
    all."""
    return next((hosts for begun, hosts in reversed(_begun(runs, name)) if begun == run_id), "")


def _begun(runs: Path, name: str) -> list[tuple[str, str]]:
    try:
        lines = pack_file(runs, name).with_suffix(".begun").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    words = (line.partition(" ") for line in lines if line)
    return [(run_id, hosts) for run_id, _, hosts in words]


def was_begun(runs: Path, name: str, run_id: str) -> bool:
    """Whether the job of a pack, which has ended, has begun this run.

    Of a job that has begun none, for whatever reason, the first counts: so each such job costs one
    of them an attempt, and none is submitted for ever.
    """
    if began := begun(runs, name):
        return run_id in began
    pack = read_pack(runs, name)
    return pack is None or run_id == pack["runs"][0]["run_id"]


def ended_in(folder: Path, job_id: int) -> bool:
    """Whether a launcher has left the failure of a run, in this folder, in this Slurm job."""
    failure = read_failure(folder) or {}
    return str(failure.get("job_id")) == str(job_id) and "by_slurm" not in failure


def is_over(folder: Path, job_id: int) -> bool:
    """Whether a run has a failure or a record that was made in this Slurm job."""
    if ended_in(folder, job_id):
        return True
    resources = (read_json(folder / RECORD) or {}).get("resources")
    slurm = resources.get("slurm") if isinstance(resources, dict) else None
    return isinstance(slurm, dict) and str(slurm.get("job_id")) == str(job_id)
