"""What Slurm's accounting says of jobs: ``parse`` is pure, the others call sacct."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from signal import SIGKILL

from scalesweep.core.causes import Cause, facts_of
from scalesweep.core.formatting import number
from scalesweep.slurm.commands import ask

FIELDS = (
    *("JobIDRaw", "State", "ExitCode", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw"),
    *("NNodes", "NCPUS", "NodeList", "Partition", "ReqMem", "MaxRSS", "Suspended", "Comment"),
)


# States of a job that is over for good; some are followed by more words (CANCELLED by 1000), which
# ``parse`` keeps apart. From any other it comes back (PENDING, RUNNING, COMPLETING, REQUEUED, ...).
FINAL = (
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT"),
)
GONE = "GONE"  # no state of Slurm's: purged, or never accounted for
_UNITS = {"": 1, **{unit: 1024 ** (n + 1) for n, unit in enumerate("KMGTP")}}
# Above it memory is Slurm's "no value".
_NO_MEMORY = 2**60


@dataclass(frozen=True, slots=True)
class Job:
    """One try of a job. Times are UTC in ISO 8601; None: not known.

    ``state`` is its first word, ``state_detail`` the rest ("by 1000"). ``started`` is None for
    a job that never got a node. ``elapsed_s`` is without the seconds for which the job was
    suspended, ``suspended_s``. Memory: ``asked_mem_bytes`` is per node (the mean, if CPUs are
    spread unevenly), ``max_rss_bytes`` the largest task of all steps. ``out_of_memory``: a step was
    killed above what was asked for. ``steps_end``: no step still runs.
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
    out_of_memory: bool = False
    steps_end: bool = True
    suspended_s: int = 0
    comment: str = ""


def query(job_ids: Sequence[int]) -> dict[int, Job]:
    """The last try of every job that the accounting knows, by id.

    Raises UserError if sacct is missing, fails (accounting is off) or does not answer.
    """
    return _ask("-j", ",".join(map(str, job_ids))) if job_ids else {}


def named(name: str, since: str) -> dict[int, Job]:
    """Every job of this name that was there ``since`` (UTC, ISO 8601), as ``query`` has them."""
    return _ask(f"--name={name}", f"--starttime={since}")


def _ask(*words: str) -> dict[int, Job]:
    # Runs in one results folder may be several users'. One unit for all, as no unit means bytes in
    # one column and megabytes in another.
    form = f"--format={','.join(FIELDS)}"
    return parse(ask("sacct", "-nP", "--allusers", "--units=K", *words, form))


def parse(text: str) -> dict[int, Job]:
    """Jobs in what ``sacct -nP --units=K`` prints of FIELDS; of several tries the last one."""
    jobs: dict[int, list[dict[str, str]]] = {}
    for line in text.splitlines():
        values = line.split("|", maxsplit=len(FIELDS) - 1)
        name, _, step = values[0].partition(".")
        if len(values) != len(FIELDS) or not name.isdecimal():
            continue
        row = dict(zip(FIELDS, values, strict=True))
        if not step:
            jobs[int(name)] = [row]
        elif int(name) in jobs:
            jobs[int(name)].append(row)
    return {job_id: _job(job_id, *rows) for job_id, rows in jobs.items()}


def finished(job: Job) -> bool:
    """Whether the job is over for good."""
    return job.state in FINAL


def settled(job: Job) -> bool:
    """Whether the accounting has all of a finished job.

    For some seconds after the end the books may lack its partition, limit and memory asked for,
    and its steps may still run there. A step that the books lost stays so, hence never wait for
    this without a limit.
    """
    return finished(job) and bool(job.partition) and job.steps_end


def cause_of(job: Job) -> tuple[str, str] | None:
    """Cause and detail of a failure that the scheduler knows better than the launcher, or None.

    None for jobs that completed, still run, or ended by their own exit code. Slurm without
    cgroups kills a step above its memory and calls the job FAILED.
    """
    name = f"job {job.job_id}"
    killed = job.state == "FAILED" and job.out_of_memory
    if killed or job.state == "OUT_OF_MEMORY":
        used, asked = _gib(job.max_rss_bytes), _gib(job.asked_mem_bytes)
        return Cause.OUT_OF_MEMORY, f"{name} requested {asked} per node and used at least {used}"
    limit = "its time limit" if job.limit_s is None else f"its limit of {job.limit_s // 60} min"
    by = job.state_detail.removeprefix("by ")
    detail = facts_of(job.state).of_slurm.format(
        job=name, limit=limit, nodes=job.node_list or "its allocation",
        by=f" by user {by}" if by else "",
    )  # fmt: skip
    return (job.state, detail) if detail else None


def _gib(size: int | None) -> str:
    return f"{number(size / 2**30)} GiB" if size else "an unknown amount"


def _job(job_id: int, row: dict[str, str], *steps: dict[str, str]) -> Job:
    """A job from its own line of sacct's output and those of its steps."""
    state, _, detail = row["State"].partition(" ")
    code, signal = _exit(row["ExitCode"])
    nodes = _int(row["NNodes"]) or 0
    placed = row["NodeList"] not in ("", "None assigned")
    limit, memory = _int(row["TimelimitRaw"]), _size(row["ReqMem"])
    # Over all nodes; 0 if the whole node's was asked for.
    asked = memory // nodes if memory and nodes and memory < _NO_MEMORY else None
    rss = [_size(line["MaxRSS"]) or 0 for line in (row, *steps)]
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
        asked_mem_bytes=asked,
        max_rss_bytes=max(rss) or None,
        out_of_memory=any(
            step["State"].startswith("OUT_OF_MEMORY")
            or (_exit(step["ExitCode"])[1] == SIGKILL and asked is not None and used > asked)
            for step, used in zip(steps, rss[1:], strict=False)
        ),
        steps_end=all(step["State"] != "RUNNING" for step in steps),
        suspended_s=_seconds(row["Suspended"]),
        comment=row["Comment"],
    )


def _int(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _exit(text: str) -> tuple[int, int]:
    """``3:0`` as exit code and signal; a step that went with its node has none."""
    code, _, signal = text.partition(":")
    return _int(code) or 0, _int(signal) or 0


def _time(text: str) -> str | None:
    return f"{text}+00:00" if re.fullmatch(r"[\d-]{10}T[\d:]{8}", text) else None


def _seconds(text: str) -> int:
    """``1-02:03:04`` in seconds; 0 where there is no time."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)", text)
    if match is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _size(text: str) -> int | None:
    """``404060K`` in bytes; None where there is no number."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)([KMGTP]?)", text)
    return round(float(match[1]) * _UNITS[match[2]]) if match else None
