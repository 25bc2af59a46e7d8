"""Runs of a list started: here in one process, or as one Slurm job for each point."""

import contextlib
import json
import logging
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, write_atomic
from scalesweep.core.formatting import counted
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.paths import REPO
from scalesweep.core.record import RECORD, read_failure
from scalesweep.planning.job_requests import CANARY_S, Request
from scalesweep.slurm import commands
from scalesweep.slurm.job_identity import PREFIX
from scalesweep.slurm.job_shape import of_slurm
from scalesweep.smk.cli import SNAKEMAKE

_log = logging.getLogger(__name__)
_SCRIPT = REPO / "workflow" / "scripts" / "launch_list.py"
_POLL_S = 1.0
_TELL_S = 10.0  # between two lines on the progress
# Network file systems may show what a job has left so much later.
_LATE_S = 10.0
_LIVE = frozenset({"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED"})

# Group, order's file and its digest, in the order of their starts.
Orders = Sequence[tuple[str, Path, str]]
JOB_NAME = f"{PREFIX}settle"


def measure_here(folder: Path, orders: Orders, say: Callable[[str], None]) -> None:
    """Launch runs one after the other on this machine; they end when this process does."""
    path = _list_file(folder, orders)
    words = [sys.executable, str(_SCRIPT), str(path)]
    env = {**os.environ, SNAKEMAKE: str(os.getpid())}
    with (
        path.with_suffix(".log").open("w") as log,
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, env=env,
            preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads here)
        ) as process,
    ):  # fmt: skip
        try:
            last = time.monotonic()
            for line in process.stdout or ():
                if time.monotonic() - last >= _TELL_S:
                    last = time.monotonic()
                    say(f"run {line.strip()}")
        finally:
            process.terminate()
            process.wait()


def measure_in_slurm(
    campaign: Campaign,
    folder: Path,
    orders: Orders,
    requests: Mapping[str, Request],
    say: Callable[[str], None],
) -> None:
    """Submit a job for each group of runs, and wait for their end; Ctrl-C cancels them.

    Both commits of a point are measured in one allocation, with the request of a run and a limit
    for all of them (``job_request``). Raises UserError if Slurm refuses one.
    """
    groups: dict[str, list[tuple[str, Path, str]]] = {}
    for one in orders:
        groups.setdefault(one[0], []).append(one)
    comment = str(folder.resolve())
    jobs: dict[int, str] = {}
    try:
        for group, own in groups.items():
            path = _list_file(folder, own)
            words = requests[group].shape.sbatch_words()
            job = shlex.join([sys.executable, str(_SCRIPT), str(path)])
            said = commands.ask(
                "sbatch", "--parsable", *words, f"--job-name={JOB_NAME}", f"--comment={comment}",
                f"--output={path.with_suffix('.log')}", f"--wrap=exec {job}",
                patience_s=commands.PATIENCE_S,
            )  # fmt: skip
            number = int(said.strip().partition(";")[0])
            jobs[number] = group
            say(f"job {number}: {counted(len(own), 'run')} of {group}")
        _await(jobs, say)
        _await_files([order for _, order, _ in orders])
    finally:
        if jobs:
            with contextlib.suppress(UserError):
                commands.ask("scancel", "--quiet", *map(str, jobs))


def cancel_left(folder: Path) -> None:
    """Cancel the jobs that a call that was killed has left in the queue for these pairs."""
    left = [
        str(job.job_id)
        for job in commands.live_jobs(commands.PATIENCE_S)
        if job.name == JOB_NAME and job.comment == str(folder.resolve())
    ]
    if left:
        commands.ask("scancel", "--quiet", *left)
        _await(dict.fromkeys(map(int, left), ""), lambda _: None)


def job_request(campaign: Campaign, request: Request, runs: int) -> Request:
    """The request of a job for so many runs one after the other: that of one of them with the limit
    of all, or the longest that the site allows; what it does not get to is measured later."""
    slurm = of_slurm(campaign.site)
    each_s = request.limit_s + CANARY_S * campaign.canary
    minutes = runs * each_s / 60
    most = max(slurm.max_minutes, each_s / 60)
    limit = int(-(-min(minutes, most) // 1) + -(-slurm.startup_minutes // 1))
    return replace(request, shape=replace(request.shape, minutes=limit))


def _list_file(folder: Path, orders: Orders) -> Path:
    """The list for ``launch_list``, under a name of its own."""
    content = [[group, str(order.resolve()), digest] for group, order, digest in orders]
    path = (folder / f"list-{digest_of(content, 4)}.json").resolve()
    write_atomic(path, json.dumps(content, indent=1) + "\n", durable=False)
    return path


def _await(jobs: Mapping[int, str], say: Callable[[str], None]) -> None:
    """Wait until no job is in the queue; says why one waits."""
    told: dict[int, str] = {}
    while True:
        states = commands.queue_states()
        live = {job: states[job] for job in jobs if states.get(job, ("", ""))[0] in _LIVE}
        if not live:
            return
        for job, (state, reason) in live.items():
            text = f"{state.lower()} ({reason})" if state == "PENDING" else state.lower()
            if told.get(job) != text:
                told[job] = text
                say(f"job {job}: {text}")
        time.sleep(_POLL_S)


def _await_files(orders: Sequence[Path]) -> None:
    """Wait a little for the last record or failure of the jobs."""
    deadline = time.monotonic() + _LATE_S
    while time.monotonic() < deadline:
        if all((o.parent / RECORD).exists() or read_failure(o.parent) for o in orders):
            return
        time.sleep(_POLL_S)
