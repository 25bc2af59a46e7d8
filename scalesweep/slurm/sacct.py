"""What Slurm's accounting says of jobs.

Standard library only; ``parse`` is pure, ``query`` calls sacct.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from signal import SIGKILL
from typing import NamedTuple

from scalesweep.core.causes import Cause, facts_of
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import number

FIELDS = (
    *("JobIDRaw", "State", "ExitCode", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw"),
    *("NNodes", "NCPUS", "NodeList", "Partition", "ReqMem", "MaxRSS", "TRESUsageInTot"),
    "Suspended",
)


class JobState(StrEnum):
    """Slurm's states of a job; some are followed by more words (CANCELLED by 1000), which ``parse``
    keeps apart."""

    PENDING = "PENDING"
    CONFIGURING = "CONFIGURING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    REQUEUED = "REQUEUED"
    BOOT_FAIL = "BOOT_FAIL"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    DEADLINE = "DEADLINE"
    FAILED = "FAILED"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    PREEMPTED = "PREEMPTED"
    RECONFIG_FAIL = "RECONFIG_FAIL"
    REVOKED = "REVOKED"
    TIMEOUT = "TIMEOUT"


# States that a job leaves by itself; from any other it comes back only where it is requeued.
LIVE = (
    *(JobState.PENDING, JobState.CONFIGURING, JobState.RUNNING, JobState.SUSPENDED),
    *(JobState.COMPLETING, JobState.REQUEUED),
)
FINAL = tuple(state for state in JobState if state not in LIVE)
GONE = "GONE"  # no state of Slurm's: purged, or never accounted for
_JOBS_PER_CALL = 200
_TIMEOUT_S = 120
_UNITS = {"": 1, **{unit: 1024 ** (n + 1) for n, unit in enumerate("KMGTP")}}
# Above it memory is Slurm's "no value".
_NO_MEMORY = 2**60
_DIGITS = 20  # of the largest number that Slurm prints


class Step(NamedTuple):
    """A step of a job (``batch``, ``extern``, ``0``, ...).

    ``max_rss_bytes`` is its largest task, ``node_rss_bytes`` all its tasks over its nodes (the
    mean of a node); both are None where nothing was sampled.
    """

    name: str
    state: str
    exit_code: int
    signal: int
    max_rss_bytes: int | None
    node_rss_bytes: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """One try of a job. Times are UTC in ISO 8601; None: not known.

    ``state`` is its first word, ``state_detail`` the rest ("by 1000"). ``started`` is None for
    a job that never got a node. ``asked_mem_bytes`` is per node (the mean, where CPUs are spread
    unevenly over nodes), ``max_rss_bytes`` the largest task of all steps. ``elapsed_s`` does not
    have the seconds for which it was suspended, ``suspended_s``.
    """

    job_id: int
    state: str
    state_detail: str = ""
    exit_code: int = 0
    signal: int = 0
    submitted: str | None = None
    started: str | None = None
    ended: str | None = None
    elapsed_s: int = 0
    limit_s: int | None = None
    nodes: int = 0
    cpus: int = 0
    node_list: str = ""
    partition: str = ""
    asked_mem_bytes: int | None = None
    max_rss_bytes: int | None = None
    steps: tuple[Step, ...] = ()
    suspended_s: int = 0


def query(job_ids: Sequence[int]) -> dict[int, Job]:
    """The last try of every job that the accounting knows, by id.

    Raises UserError if sacct is missing, fails (accounting is off) or does not answer.
    """
    jobs: dict[int, Job] = {}
    for start in range(0, len(job_ids), _JOBS_PER_CALL):
        ids = ",".join(map(str, job_ids[start : start + _JOBS_PER_CALL]))
        # One unit for all, as no unit means bytes in one column and megabytes in another.
        jobs |= parse(_ask("--units=K", "-j", ids, f"--format={','.join(FIELDS)}"))
    return jobs


def named(name: str, since: str) -> dict[int, str]:
    """Id -> comment of every job of this name that was there ``since`` (UTC, ISO 8601).

    The comment is empty where Slurm keeps none (AccountingStoreFlags without job_comment). Raises
    UserError as ``query`` does.
    """
    words = ("-X", f"--name={name}", f"--starttime={since}", "--format=JobIDRaw,Comment")
    rows = (line.partition("|") for line in _ask(*words).splitlines())
    return {job_id: comment for text, _, comment in rows if (job_id := _int(text)) is not None}


def _ask(*words: str) -> str:
    """What sacct prints, times in UTC; raises UserError."""
    env = {**os.environ, "TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}
    try:
        done = subprocess.run(
            # Runs in one results folder may be several users'.
            ["sacct", "-nP", "--allusers", *words],
            env=env, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise UserError("sacct: not found on this machine") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"sacct: no answer within {_TIMEOUT_S} s") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        why = re.sub(r"^sacct: ", "", said[-1]) if said else f"exit code {done.returncode}"
        raise UserError(f"sacct: {why}")
    return done.stdout


def parse(text: str) -> dict[int, Job]:
    """Jobs in what ``sacct -nP --units=K`` prints of FIELDS; of several tries the last one."""
    jobs: dict[int, Job] = {}
    for line in text.splitlines():
        values = line.split("|")
        if len(values) != len(FIELDS):
            continue
        row = dict(zip(FIELDS, values, strict=True))
        name, _, step = row["JobIDRaw"].partition(".")
        job_id = _int(name)
        if job_id is None:
            continue
        if not step:
            jobs[job_id] = _job(job_id, row)
        elif job := jobs.get(job_id):
            jobs[job_id] = _with_step(job, step, row)
    return jobs


def finished(job: Job) -> bool:
    """Whether the job is over for good."""
    return job.state in FINAL


def settled(job: Job) -> bool:
    """Whether the accounting has all of a finished job.

    For some seconds after the end the books may lack its partition, limit and memory asked for,
    and its steps may still run there. A step that the books lost stays so, hence never wait for
    this without a limit.
    """
    ended = all(step.state != JobState.RUNNING for step in job.steps)
    return finished(job) and bool(job.partition) and ended


def cause_of(job: Job) -> tuple[str, str] | None:
    """Cause and detail of a failure that the scheduler knows better than the launcher, or None.

    None for jobs that completed, still run, or ended by their own exit code.
    """
    name = f"job {job.job_id}"
    if _out_of_memory(job):
        used = max((step.node_rss_bytes or 0 for step in job.steps), default=0)
        seen = _gib(max(used, job.max_rss_bytes or 0))
        asked = _gib(job.asked_mem_bytes)
        return Cause.OUT_OF_MEMORY, f"{name} requested {asked} per node and used at least {seen}"
    limit = "its time limit" if job.limit_s is None else f"its limit of {job.limit_s // 60} min"
    by = job.state_detail.removeprefix("by ")
    detail = facts_of(job.state).of_slurm.format(
        job=name, limit=limit, nodes=job.node_list or "its allocation",
        by=f" by user {by}" if by else "",
    )  # fmt: skip
    return (job.state, detail) if detail else None


def _out_of_memory(job: Job) -> bool:
    if job.state == JobState.OUT_OF_MEMORY:
        return True
    # Where Slurm has no cgroups it kills a step above its memory and calls that FAILED. Tasks
    # that are each below it may be above it together.
    return job.state == JobState.FAILED and any(
        step.state == JobState.OUT_OF_MEMORY
        or (
            step.signal == SIGKILL
            and job.asked_mem_bytes is not None
            and max(step.max_rss_bytes or 0, step.node_rss_bytes or 0) > job.asked_mem_bytes
        )
        for step in job.steps
    )


def _gib(size: int | None) -> str:
    return f"{number(size / 2**30)} GiB" if size else "an unknown amount"


def _job(job_id: int, row: dict[str, str]) -> Job:
    """A job from its own line of sacct's output, without its steps."""
    state, _, detail = row["State"].partition(" ")
    code, signal = _exit(row["ExitCode"])
    nodes = _int(row["NNodes"]) or 0
    placed = row["NodeList"] not in ("", "None assigned")
    limit, memory = _int(row["TimelimitRaw"]), _size(row["ReqMem"])
    return Job(
        job_id=job_id,
        state=state.removesuffix("+"),  # cut, as without -P
        state_detail=detail,
        exit_code=code,
        signal=signal,
        submitted=_time(row["Submit"]),
        # Slurm gives a job that was cancelled in the queue its end for a start.
        started=_time(row["Start"]) if placed else None,
        ended=_time(row["End"]),
        elapsed_s=_int(row["ElapsedRaw"]) or 0,
        limit_s=None if limit is None else limit * 60,
        nodes=nodes,
        cpus=_int(row["NCPUS"]) or 0,
        node_list=row["NodeList"] if placed else "",
        partition=row["Partition"],
        # Over all nodes; 0 where the whole node's was asked for.
        asked_mem_bytes=memory // nodes if memory and nodes and memory < _NO_MEMORY else None,
        max_rss_bytes=_size(row["MaxRSS"]),
        suspended_s=_seconds(row["Suspended"]),
    )


def _with_step(job: Job, name: str, row: dict[str, str]) -> Job:
    total = re.search(r"\bmem=([\d.]+[KMGTP]?)", row["TRESUsageInTot"])
    used, largest = _size(total[1]) if total else None, _size(row["MaxRSS"])
    mean = None if used is None else used // (_int(row["NNodes"]) or 1)
    state = row["State"].partition(" ")[0]
    step = Step(name, state, *_exit(row["ExitCode"]), largest, mean)
    most = max(job.max_rss_bytes or 0, largest or 0) or None
    return replace(job, steps=(*job.steps, step), max_rss_bytes=most)


def _int(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _exit(text: str) -> tuple[int, int]:
    """``3:0`` as exit code and signal; a step that went with its node has none."""
    code, _, signal = text.partition(":")
    return _int(code) or 0, _int(signal) or 0


def _time(text: str) -> str | None:
    return f"{text}+00:00" if re.fullmatch(r"[\d-]{10}T[\d:]{8}", text) else None


def _seconds(text: str) -> int:
    """``1-02:03:04`` in seconds; 0 where there is no time."""
    match = re.fullmatch(r"(?:(\d{1,9})-)?(\d{1,9}):(\d\d):(\d\d)", text, re.ASCII)
    if match is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _size(text: str) -> int | None:
    """``404060K`` in bytes; None where there is no number."""
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{0,9})?)([KMGTP]?)", text, re.ASCII)
    return round(float(match[1]) * _UNITS[match[2]]) if match else None
