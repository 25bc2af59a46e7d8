"""Runs of pairs started: here one after the other, or as one Slurm job for each point."""

import contextlib
import logging
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalesweep.compute.pack import PackedRun, pack_file, write_pack
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.paths import REPO
from scalesweep.core.record import RECORD, read_failure
from scalesweep.jobs.job_requests import Request, canary_s
from scalesweep.slurm import commands
from scalesweep.slurm.job_identity import PREFIX
from scalesweep.slurm.job_shape import of_slurm
from scalesweep.slurm.sacct import LIVE, JobState
from scalesweep.smk.cli import SNAKEMAKE

_log = logging.getLogger(__name__)
_SCRIPT = REPO / "workflow" / "scripts" / "launch.py"
_POLL_S = 1.0
_TELL_S = 10.0  # between two lines on the progress
# Network file systems may show what a job has left so much later.
_LATE_S = 10.0

# Kept of a job, and of a run's patience, for what is around the runs.
SPARE_S = 60.0
JOB_NAME = f"{PREFIX}ab"


def measure_here(folder: Path, runs: Sequence[PackedRun], say: Callable[[str], None]) -> None:
    """Launch runs one after the other on this machine; they end when this process does."""
    words, log = _pack(folder, runs, None, SPARE_S)
    env = {**os.environ, SNAKEMAKE: str(os.getpid())}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            env=env, preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads here)
        ) as process,
    ):  # fmt: skip
        try:
            last = time.monotonic()
            for done, _ in enumerate(process.stdout or (), 1):
                if time.monotonic() - last >= _TELL_S:
                    last = time.monotonic()
                    say(f"run {done} of {len(runs)}")
        finally:
            process.terminate()
            process.wait()


def measure_in_slurm(
    campaign: Campaign,
    folder: Path,
    runs: Sequence[PackedRun],
    requests: Mapping[str, Request],
    say: Callable[[str], None],
) -> None:
    """Submit a job for each group of runs, and wait for their end; Ctrl-C cancels them.

    Both commits of a point are measured in one allocation, with the request of a run and a limit
    for all of them (``job_request``). Raises UserError if Slurm refuses one.
    """
    groups: dict[str, list[PackedRun]] = {}
    for run in runs:
        groups.setdefault(run["group"], []).append(run)
    spare_s = 60 * of_slurm(campaign.site).startup_minutes
    comment = str(folder.resolve())
    jobs: dict[int, str] = {}
    try:
        for group, own in groups.items():
            shape = requests[group].shape
            job, log = _pack(folder, own, 60.0 * shape.minutes, spare_s)
            said = commands.ask(
                "sbatch", "--parsable", *shape.sbatch_words(), f"--job-name={JOB_NAME}",
                f"--comment={comment}", f"--output={log}", f"--wrap=exec {shlex.join(job)}",
                patience_s=commands.PATIENCE_S,
            )  # fmt: skip
            number = int(said.strip().partition(";")[0])
            jobs[number] = group
            say(f"job {number}: {counted(len(own), 'run')} of {group}")
        _await(jobs, say)
        _await_files(folder, runs)
    finally:
        if jobs:
            with contextlib.suppress(UserError):
                commands.ask("scancel", "--quiet", *map(str, jobs))


def cancel_left(folder: Path) -> None:
    """Cancel the jobs that a call that was killed has left in the queue for these pairs."""
    left = [
        str(job.job_id)
        for job in commands.live_jobs(commands.PATIENCE_S)
        if job.comment == str(folder.resolve())
    ]
    if left:
        commands.ask("scancel", "--quiet", *left)
        _await(dict.fromkeys(map(int, left), ""), lambda _: None)


def job_request(
    campaign: Campaign, point: Mapping[str, Any], request: Request, runs: int
) -> Request:
    """The request of a job for so many runs of a point one after the other: that of one of them
    with the limit of all, or the longest that the site allows; what it does not get to is measured
    later."""
    slurm = of_slurm(campaign.site)
    each_s = request.limit_s + canary_s(campaign, point)
    minutes = runs * each_s / 60
    most = max(slurm.max_minutes, each_s / 60)
    limit = int(-(-min(minutes, most) // 1) + -(-slurm.startup_minutes // 1))
    return replace(request, shape=replace(request.shape, minutes=limit))


def _pack(
    folder: Path, runs: Sequence[PackedRun], given_s: float | None, spare_s: float
) -> tuple[list[str], Path]:
    """The words that launch these runs one after the other, and the path of their log."""
    name = write_pack(folder, {"runs": list(runs), "given_s": given_s, "spare_s": spare_s})
    path = pack_file(folder, name).resolve()
    return [sys.executable, str(_SCRIPT), "--pack", str(path)], path.with_suffix(".log")


def _await(jobs: Mapping[int, str], say: Callable[[str], None]) -> None:
    """Wait until no job is in the queue; says why one waits."""
    shown: dict[int, str] = {}
    while True:
        states = commands.queue_states()
        live = {job: states[job] for job in jobs if job in states and states[job].state in LIVE}
        if not live:
            return
        for job, (state, reason, _) in live.items():
            text = f"{state.lower()} ({reason})" if state == JobState.PENDING else state.lower()
            if shown.get(job) != text:
                shown[job] = text
                say(f"job {job}: {text}")
        time.sleep(_POLL_S)


def _await_files(folder: Path, runs: Sequence[PackedRun]) -> None:
    """Wait a little for the last record or failure of the jobs."""
    deadline = time.monotonic() + _LATE_S
    while time.monotonic() < deadline:
        failed = {run["group"] for run in runs if read_failure(folder / run["run_id"])}
        left = [run for run in runs if run["group"] not in failed]
        if all((folder / run["run_id"] / RECORD).exists() for run in left):
            return
        time.sleep(_POLL_S)
