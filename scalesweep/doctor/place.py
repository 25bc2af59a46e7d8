"""Where the doctor's checks of nodes are carried out: a Slurm job like a run's, or this machine."""

import contextlib
import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from scalesweep.compute.doctor.checks import FAILED, SKIPPED, WARNING, Check, Checks
from scalesweep.compute.doctor.main import PART_S, names
from scalesweep.compute.doctor.nodes import NODES
from scalesweep.compute.doctor.order import CHECKS
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.record import last_lines
from scalesweep.doctor.order import needs_of, node_command, order_for, point_of
from scalesweep.slurm import commands
from scalesweep.slurm.job_shape import run_shape
from scalesweep.slurm.sacct import JobState

# All checks of nodes together, from the submission of their job, where there is one part.
ONE_PART_S = 108.0
# How long the job may wait in the queue: the rest is what its checks take.
QUEUE_S = 50.0
# A network file system may show the last lines of a job so much later.
LATE_S = 5.0
_JOB_MORE_S = 12.0  # a job's own end, after that of its checks
_POLL_S = 0.2


def names_of(campaign: Campaign) -> list[str]:
    """The checks where runs of a campaign are."""
    return names(needs_of(campaign))


def all_s(campaign: Campaign) -> float:
    """The seconds that these have together."""
    return ONE_PART_S + PART_S * (len(needs_of(campaign)) - 1)


def examine(campaign: Campaign, folder: Path, in_slurm: bool) -> Checks:
    """The outcomes of ``names_of``, as they come."""
    order = order_for(campaign, folder, in_slurm)
    if in_slurm:
        yield from _in_a_job(campaign, order)
        return
    with (folder / "here.log").open("wb") as log:
        process = subprocess.Popen(
            node_command(order), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield from _follow(campaign, folder, lambda: process.poll() is None)
    finally:
        process.terminate()
        process.wait()


def _in_a_job(campaign: Campaign, order: Path) -> Checks:
    """Submit the checks as a job with the request of a run, and follow it."""
    folder = order.parent
    shape = run_shape(campaign.site, point_of(campaign), all_s(campaign) + _JOB_MORE_S)
    words = [*shape.sbatch_words(), "--job-name=scalesweep-doctor", f"--output={folder}/job.log"]
    try:
        said = commands.ask(
            "sbatch", "--parsable", *words, f"--wrap={shlex.join(node_command(order))}"
        )
    except UserError as error:
        yield from _none(campaign, FAILED, str(error), f"correct slurm in {campaign.site.file}")
        return
    job = said.strip().partition(";")[0]
    try:
        if waits := _wait_for_a_node(job):
            detail = f"no node within {QUEUE_S:g} s (Slurm: {waits})"
            yield from _none(campaign, WARNING, detail, "call the doctor again when nodes are free")
            return
        yield from _follow(
            campaign, folder,
            lambda: _state(job)[0] not in ("", JobState.COMPLETED, JobState.FAILED),
        )  # fmt: skip
    finally:
        with contextlib.suppress(UserError):
            commands.ask("scancel", job)


def _wait_for_a_node(job: str) -> str:
    """Why a job is still pending when its time is up; empty once it has started."""
    deadline = time.monotonic() + QUEUE_S
    state, reason = _state(job)
    while state in (JobState.PENDING, JobState.CONFIGURING) and time.monotonic() < deadline:
        time.sleep(1)
        state, reason = _state(job)
    return reason or state if state in (JobState.PENDING, JobState.CONFIGURING) else ""


def _state(job: str) -> tuple[str, str]:
    """State and reason of a job in the queue; empty once Slurm has forgotten it."""
    try:
        state, _, reason = commands.ask("squeue", "-h", "-j", job, "-o", "%T|%r").partition("|")
    except UserError:
        return "", ""
    return state.strip(), reason.strip()


def _follow(campaign: Campaign, folder: Path, works: Callable[[], bool]) -> Iterator[Check]:
    """The outcomes in the file of the node's side, as they come, until its end."""
    awaited, read, ended = names_of(campaign), 0, 0.0
    while True:
        alive = works()
        with contextlib.suppress(FileNotFoundError), (folder / CHECKS).open("rb") as file:
            file.seek(read)
            *lines, _ = file.read().split(b"\n")
            for line in lines:
                read += len(line) + 1
                if not line:
                    return
                check = Check(*json.loads(line))
                if check.name in awaited:
                    awaited.remove(check.name)
                yield check
        if not alive:
            # Looked at once more after a while: the file may be seen later than the end.
            ended = ended or time.monotonic()
            if time.monotonic() - ended > LATE_S:
                break
        time.sleep(_POLL_S)
    yield from _lost(folder, awaited)


def _lost(folder: Path, awaited: Sequence[str]) -> Iterator[Check]:
    """The checks whose outcome has not come although the node's side has ended."""
    logs = [line for log in ("job.log", "here.log") for line in last_lines(folder / log) if line]
    said = f": {logs[-1].strip()[:300]}" if logs else ""
    for number, name in enumerate(awaited):
        if number:
            yield Check(name, SKIPPED, f"needs {awaited[0]}")
        else:
            yield Check(
                name, FAILED, f"the checks there ended without an answer{said}",
                f"see that nodes see {folder.parents[1]} and scalesweep's own folder",
            )  # fmt: skip


def _none(campaign: Campaign, state: str, detail: str, mend: str) -> Iterator[Check]:
    """No check can be carried out on a node."""
    yield Check(NODES, state, detail, mend)
    for name in names_of(campaign):
        if name != NODES:
            yield Check(name, SKIPPED, f"needs {NODES}")
