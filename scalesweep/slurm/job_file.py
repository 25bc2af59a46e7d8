"""job.json: the Slurm jobs that were submitted for a run, in the run's folder.

Written by the executor when Slurm has taken a job (``scalesweep.smk.executor_hooks``). By it a
later Snakemake knows the jobs of one that is gone, and the accounting those of a campaign.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import JOB_FILE
from scalesweep.core.files import read_json, write_atomic

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job of a run: its id, which attempt of one Snakemake it is (from 1), and Slurm's log.

    ``user``: who submitted it; empty in files of before.
    ``called_off``: the call that submitted it was interrupted, and cancelled it: nothing failed.
    """

    job_id: int
    attempt: int
    log: str
    called_off: bool = False
    user: str = ""


def submitted_jobs(run_folder: Path) -> list[SubmittedJob]:
    """Jobs of a run, oldest first; none where there is no file or it cannot be read."""
    content = read_json(run_folder / JOB_FILE) or {}
    try:
        return [
            SubmittedJob(
                int(job["job_id"]),
                int(job["attempt"]),
                str(job["log"]),
                bool(job.get("called_off")),
                str(job.get("user", "")),
            )
            for job in content["jobs"]
        ]
    except (KeyError, TypeError, ValueError):
        return []


def note_submitted(run_folder: Path, job: SubmittedJob) -> None:
    """Add a job to those of a run. Raises OSError."""
    run_folder.mkdir(parents=True, exist_ok=True)
    _write(run_folder, [*submitted_jobs(run_folder), job])


def note_called_off(run_folder: Path) -> None:
    """Note that the last job of a run was cancelled with its call. Raises OSError."""
    if jobs := submitted_jobs(run_folder):
        _write(run_folder, [*jobs[:-1], replace(jobs[-1], called_off=True)])


def _entry(job: SubmittedJob) -> dict[str, Any]:
    optional = ("called_off", "user")
    return {name: value for name, value in asdict(job).items() if name not in optional or value}


def _write(run_folder: Path, jobs: Sequence[SubmittedJob]) -> None:
    text = json.dumps({"schema": SCHEMA, "jobs": [_entry(job) for job in jobs]}, indent=1)
    # Not durable: after a power failure the log and the comment of a job still tell.
    write_atomic(run_folder / JOB_FILE, text + "\n", durable=False)
