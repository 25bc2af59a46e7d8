"""How Slurm is asked; what is in its queue and whose it is, and what it has against a request.

All jobs of a site's runs in a results folder have one name, which holds a digest of the folder's
real path: two clones that share a results folder see each other's jobs, two results folders never
do, and jobs of a killed Snakemake are still in queue and accounting by that name. Which run a job
is of its comment says, and, as many accountings keep no comments, the folder that its log lies in.
"""

import getpass
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import counted
from scalesweep.core.paths import MARKER

_log = logging.getLogger(__name__)

PREFIX = "scalesweep_"
_STAGE = "stage "
# The Slurm job that this process was started in, for what it tells of others (``leave_job``).
HEAD_JOB = "SCALESWEEP_HEAD_JOB"
COMMANDS = ("sbatch", "squeue", "sinfo", "srun")
LEFT_TO_RUN = "`scalesweep run` waits for them, `scalesweep cancel` ends them"
# slurmctld restarts, fails over or is overloaded for minutes; the jobs know nothing of it.
PATIENCE_S = 600.0
_TIMEOUT_S = 120
_LONGEST_S = 30.0  # between two questions
# What Slurm's commands print while a daemon of Slurm does not answer (slurm_errno.c), and would
# not print once it does.
_AWAY = re.compile(
    r"Unable to contact slurm controller|Communication connection failure"
    r"|Communication (?:shutdown|receive|send) failure|Message (?:receive|send) failure"
    r"|Socket timed out|Zero Bytes were transmitted|Connection (?:refused|timed out|reset)"
    r"|backup controller in standby|temporarily unable|Resource temporarily unavailable"
    r"|Slurm database daemon is not|did not answer within",
    re.IGNORECASE,
)
# Limits of submitted jobs of a user, an account or a QOS (slurm/src/common/slurm_protocol_defs.c,
# job_reason_string); what follows them is said of other limits too.
_FULL = re.compile(r"\b((?:QOS|Assoc)\w*SubmitJob\w*Limit)\b")
# Said of nodes that do not exist, and of those that are drained.
_LACKING = "Requested node configuration is not available"


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job of this user in the queue; whose it is name and comment say.

    ``reason`` is Slurm's word for why a pending job does not start (Resources, Priority, ...).
    """

    job_id: int
    state: str
    name: str = ""
    comment: str = ""
    reason: str = ""
    nodes: str = ""


def check_commands() -> None:
    """Raise UserError if a command of Slurm's is missing."""
    for command in COMMANDS:
        if shutil.which(command) is None:
            raise UserError(
                f"{command} not found on this machine: run snakemake where Slurm's commands are "
                "(a login node), or leave out --profile slurm to run here"
            )


def leave_job() -> None:
    """Forget the Slurm job that this process is in: what its variables say of nodes, tasks and
    memory would be taken for what is asked of the next one. Which cluster it is stays known."""
    if job := os.environ.get("SLURM_JOB_ID"):
        os.environ[HEAD_JOB] = job
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        if name != "SLURM_CONF":
            del os.environ[name]


def is_away(said: object) -> bool:
    """Whether a command failed because Slurm does not answer at the moment: try it again."""
    return _AWAY.search(str(said)) is not None


def passes(said: str) -> bool:
    """Whether what sbatch met passes by itself: Slurm does not answer, or takes no more jobs."""
    return is_away(said) or _FULL.search(said) is not None


def last_line(said: str) -> str:
    """What came of a submission; what precedes it may be a warning of the site's."""
    lines = said.strip().splitlines() or ["no reason given"]
    return lines[-1].removeprefix("sbatch: ").removeprefix("error: ")


def ask(*words: str, patience_s: float = 0.0) -> str:
    """Output of one of Slurm's commands, times in UTC; raises UserError with its first complaint.

    For ``patience_s`` it is asked again while Slurm does not answer.
    """
    last, pause_s = time.monotonic() + patience_s, 1.0
    while True:
        try:
            return _ask_once(*words)
        except UserError as error:
            if not is_away(error) or time.monotonic() >= last:
                raise
            if pause_s == 1.0:
                _log.warning("%s; asking again for up to %.0f s", error, patience_s)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_S)


def sbatch(words: Sequence[str], script: str) -> tuple[int | None, str]:
    """Submit a shell script: the job's id, or None and what sbatch has against it."""
    command = ["sbatch", "--parsable", *words]
    script = f"#!/bin/sh\n{script}\n"
    try:
        done = subprocess.run(
            command, input=script, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"sbatch did not answer within {_TIMEOUT_S} s"
    # Sites may print more than the number and, where there are several, the cluster.
    number = re.search(r"^(\d+)(?:;.*)?$", done.stdout, re.MULTILINE)
    return (int(number[1]), "") if number and not done.returncode else (None, done.stderr)


def _ask_once(*words: str) -> str:
    env = {**os.environ, "TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}
    try:
        done = subprocess.run(
            words, env=env, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise UserError(f"{words[0]} not found on this machine") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{words[0]} did not answer within {_TIMEOUT_S} s") from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        first = said[0].removeprefix(f"{words[0]}: ") if said else f"exit code {done.returncode}"
        raise UserError(f"{words[0]}: {first}")
    return done.stdout


def live_jobs(patience_s: float = 0.0) -> list[LiveJob]:
    """The jobs of scalesweep that this user has in the queue; raises UserError.

    ``patience_s``: as for ``ask``.
    """
    return [job for job in _queue(patience_s) if job.name.startswith(PREFIX)]


def queue_states() -> dict[int, LiveJob]:
    """This user's jobs by id, those too that ended minutes ago (MinJobAge). Raises UserError."""
    return {job.job_id: job for job in _queue(0.0, "--states=all")}


def _queue(patience_s: float, *words: str) -> list[LiveJob]:
    user = f"--user={getpass.getuser()}"
    form = "--format=%A|%T|%N|%j|%r|%k"
    jobs = []
    for line in ask("squeue", "--noheader", user, *words, form, patience_s=patience_s).splitlines():
        job_id, *rest = line.split("|", maxsplit=5)  # a comment may hold any character
        if job_id.isdecimal() and len(rest) == 5:
            state, nodes, name, reason, comment = rest
            jobs.append(LiveJob(int(job_id), state, name, comment, reason, nodes))
    return jobs


def refusal(
    words: Sequence[str], patience_s: float = 0.0, waits_for_nodes: bool = True
) -> str | None:
    """What Slurm has against a request (options of sbatch), or None if it would take it.

    ``patience_s``: as for ``ask``. ``waits_for_nodes``: a request that nodes cannot meet is none
    against which there is something while some are down.
    """
    try:
        test = ("sbatch", "--test-only", *words, "--output=/dev/null", "--wrap=true")
        ask(*test, patience_s=patience_s)
    except UserError as error:
        text = str(error).removeprefix("sbatch: ").removeprefix("error: ")
        if waits_for_nodes and _LACKING in text:
            states = ask("sinfo", "--noheader", "--format=%T").split()
            if any(not re.match(r"(?:idle|mixed|alloc\w*|compl\w*)\W?$", it) for it in states):
                return None  # it waits until those that are down are back
        return re.sub(r"^allocation failure: ", "", text)
    return None


def job_name(runs_folder: Path) -> str:
    """The name of the Slurm jobs of the runs in ``runs_folder``, which is of one site."""
    return f"{PREFIX}{digest_of(str(runs_folder.resolve()), 6)}"


def staging_comment(folder: Path) -> str:
    """The comment of a job that makes a data set in this folder; that of a run's job is its id."""
    return f"{_STAGE}{folder.resolve()}"


def is_run(comment: str) -> bool:
    """Whether a job is of some run, and not of staging."""
    return not comment.startswith(_STAGE)


def logs_folder(runs_folder: Path) -> Path:
    """Where the logs of a site's jobs lie: ``<run id>/<job id>.log``, of staging in ``stage``."""
    return runs_folder.parents[1] / "logs" / "slurm" / runs_folder.name


def logs_of(runs_folder: Path, run_ids: Collection[str]) -> Iterator[tuple[str, int, Path]]:
    """Run, job and log of each job of these runs (a set or the like) that has begun."""
    for log in logs_folder(runs_folder).glob("*/*.log"):
        if log.parent.name in run_ids and log.stem.isdecimal():
            yield log.parent.name, int(log.stem), log


def first_submission(runs_folder: Path) -> str | None:
    """From when on the accounting may have jobs of these runs, UTC as sacct takes it: since their
    results folder was made; None if no job was submitted."""
    try:
        made = (runs_folder.parents[1] / MARKER).stat().st_mtime
    except OSError:
        return None
    # An hour earlier, for clocks differ.
    since = datetime.fromtimestamp(made - 3600, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return since if logs_folder(runs_folder).is_dir() else None


def jobs_in_queue(runs_folder: Path) -> list[LiveJob]:
    """This user's jobs for the runs in a folder. Raises UserError if Slurm does not answer."""
    name = job_name(runs_folder)
    return [job for job in live_jobs(PATIENCE_S) if job.name == name and is_run(job.comment)]


def await_jobs(runs_folder: Path) -> None:
    """Wait until no job is in the queue; one line when it begins. Ctrl-C leaves the jobs there.

    Raises UserError if Slurm does not answer, SystemExit at Ctrl-C.
    """
    left, pause_s = "", 2.0
    try:
        while jobs := jobs_in_queue(runs_folder):
            if not left:
                left = f"{counted(len(jobs), 'job')} of an earlier call"
                print(f"waiting for {left} in Slurm's queue", file=sys.stderr, flush=True)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_S)
    except KeyboardInterrupt:
        sys.exit(f"error: interrupted: {left} may be in Slurm's queue; {LEFT_TO_RUN}")


def cancel_jobs(runs_folder: Path) -> int:
    """Cancel all jobs of the runs in a folder; how many there were. Raises UserError."""
    jobs = jobs_in_queue(runs_folder)
    if jobs:
        ask("scancel", "--quiet", *(str(job.job_id) for job in jobs))
    return len(jobs)
