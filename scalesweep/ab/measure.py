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

from scalesweep.ab.pairs import Ordered
from scalesweep.compute.job_spec import LAUNCHER_LOG
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

JOB_NAME = f"{PREFIX}ab"


def measure_here(runs: Sequence[Ordered], say: Callable[[str], None]) -> None:
    """Launch runs one after the other on this machine; they end when this process does. Once a run
    has failed, the others of its point are left out."""
    failed: set[str] = set()
    last = time.monotonic()
    for number, run in enumerate(runs):
        if run.group in failed:
            continue
        if time.monotonic() - last >= _TELL_S:
            last = time.monotonic()
            say(f"run {number} of {len(runs)}")
        with (
            run.order.with_name(LAUNCHER_LOG).open("w") as log,
            subprocess.Popen(
                _words(run), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, SNAKEMAKE: str(os.getpid())},
                preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads here)
            ) as process,
        ):  # fmt: skip
            try:
                if process.wait():
                    failed.add(run.group)
            finally:
                process.terminate()


def measure_in_slurm(
    folder: Path,
    runs: Sequence[Ordered],
    requests: Mapping[str, Request],
    say: Callable[[str], None],
) -> None:
    """Submit a job for each group of runs, and wait for their end; Ctrl-C cancels them.

    Both commits of a point are measured in one allocation, with the request of a run and a limit
    for all of them (``job_request``). Raises UserError if Slurm refuses one.
    """
    groups: dict[str, list[Ordered]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    comment = str(folder.resolve())
    jobs: dict[int, str] = {}
    try:
        for group, own in groups.items():
            shape = requests[group].shape
            said = commands.ask(
                "sbatch", "--parsable", *shape.sbatch_words(), f"--job-name={JOB_NAME}",
                f"--comment={comment}", f"--output={comment}/job-%j.log",
                f"--wrap={_script(own)}",
                patience_s=commands.PATIENCE_S,
            )  # fmt: skip
            number = int(said.strip().partition(";")[0])
            jobs[number] = group
            say(f"job {number}: {counted(len(own), 'run')} of {group}")
        _await(jobs, say)
        _await_files(runs)
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
    each_s = request.limit_s + canary_s(campaign)
    minutes = runs * each_s / 60
    most = max(slurm.max_minutes, each_s / 60)
    limit = int(-(-min(minutes, most) // 1) + -(-slurm.startup_minutes // 1))
    return replace(request, shape=replace(request.shape, minutes=limit))


def _words(run: Ordered) -> list[str]:
    """The words that launch a run."""
    return [
        sys.executable,
        str(_SCRIPT),
        "--order",
        str(run.order.resolve()),
        "--digest",
        run.digest,
    ]


def _script(runs: Sequence[Ordered]) -> str:
    """A line of shell that launches runs until one fails."""
    logs = (shlex.quote(str(run.order.with_name(LAUNCHER_LOG).resolve())) for run in runs)
    return " && ".join(
        f"{shlex.join(_words(run))} > {log} 2>&1" for run, log in zip(runs, logs, strict=True)
    )


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


def _await_files(runs: Sequence[Ordered]) -> None:
    """Wait a little for the last record or failure of the jobs."""
    deadline = time.monotonic() + _LATE_S
    while time.monotonic() < deadline:
        failed = {run.group for run in runs if read_failure(run.order.parent)}
        left = [run for run in runs if run.group not in failed]
        if all(run.order.with_name(RECORD).exists() for run in left):
            return
        time.sleep(_POLL_S)
