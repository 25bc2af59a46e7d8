"""Why a run has no result: each cause, who finds it, and what the next job of the run asks for.

A cause is added here: a member and its record, with which it has its place in retries and in the
tables of the documentation (``tools/pages.py``). Only the code that finds it is elsewhere, unless
an exit code or a state of Slurm's does. Files may name causes of
other versions: of these nothing is known (``facts_of``). Standard library only, for the launcher.
"""

from enum import Enum, StrEnum
from typing import NamedTuple


class Cause(StrEnum):
    """Why a run has no result, as failure.json, plan.json and the report name it."""

    TIMEOUT = "TIMEOUT"
    HANG = "HANG"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    GPU_OUT_OF_MEMORY = "GPU_OUT_OF_MEMORY"
    NON_ZERO_EXIT = "NON_ZERO_EXIT"
    BAD_RESULT = "BAD_RESULT"
    MISSING_DATA = "MISSING_DATA"
    UNSUPPORTED = "UNSUPPORTED"
    DISK_FULL = "DISK_FULL"
    KILLED = "KILLED"
    SUSPENDED = "SUSPENDED"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    EXCHANGE_TIMEOUT = "EXCHANGE_TIMEOUT"
    EXCHANGE_FAILED = "EXCHANGE_FAILED"
    GPU_FAULT = "GPU_FAULT"
    NODE_FAIL = "NODE_FAIL"
    BOOT_FAIL = "BOOT_FAIL"
    PREEMPTED = "PREEMPTED"
    CANCELLED = "CANCELLED"
    DEADLINE = "DEADLINE"
    NOT_SUBMITTED = "NOT_SUBMITTED"
    BAD_RECORD = "BAD_RECORD"
    UNFINISHED = "UNFINISHED"
    NOT_STATED = "NOT_STATED"
    UNKNOWN = "UNKNOWN"


class NextJob(StrEnum):
    """What the next job of a run asks for in the same call, in words."""

    MORE_TIME = (
        "twice the limit, up to `max_minutes`; a hang of an external program is a TIMEOUT too"
    )
    MORE_MEMORY = "twice the memory, up to the node's"
    SAME_ONCE = "the same, once"
    ELSEWHERE = "the same without the nodes of the job, if Slurm can spare them"
    SAME = "the same"
    NONE = "none: it would fail again. The next call of Snakemake tries again"


class Given(Enum):
    """What a job was given, and has used up."""

    TIME = "limit_s"
    MEMORY = "mem_mb"


LAUNCHER, SLURM, CALL, IMPORT = "launcher", "Slurm", "Snakemake call", "import"


class CauseFacts(NamedTuple):
    """What is known of a cause.

    ``meaning``: in words. ``found_by``: who finds it, the last of them has the last word.
    ``used_up``: what the job ran out of. ``exit_code``: with which a native program says so.
    ``of_slurm``: the detail where it is a state of Slurm's, with ``{job}``, ``{limit}``,
    ``{nodes}`` and ``{by}``.
    """

    meaning: str
    found_by: tuple[str, ...]
    next_job: NextJob = NextJob.NONE
    used_up: Given | None = None
    exit_code: int | None = None
    of_slurm: str = ""


# Exit codes are those of sysexits.h: EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_OSERR, EX_TEMPFAIL;
# 79 is the first behind them.
_FACTS: dict[str, CauseFacts] = {
    Cause.TIMEOUT: CauseFacts(
        "It was not done at its time limit, and had made progress or does not say whether it does "
        "(external programs)",
        (LAUNCHER, SLURM), NextJob.MORE_TIME, used_up=Given.TIME, of_slurm="{job} reached {limit}",
    ),
    Cause.HANG: CauseFacts(
        "No rank made progress during the last quarter of its time limit",
        (LAUNCHER,), NextJob.SAME_ONCE, used_up=Given.TIME,
    ),
    Cause.OUT_OF_MEMORY: CauseFacts(
        "A process or step was killed for its memory, or the program got no more of the host's",
        (LAUNCHER, SLURM), NextJob.MORE_MEMORY, used_up=Given.MEMORY, exit_code=71,
    ),
    Cause.GPU_OUT_OF_MEMORY: CauseFacts(
        "The memory of a GPU was not enough; more memory of the host would not help",
        (LAUNCHER,), exit_code=79,
    ),
    Cause.NON_ZERO_EXIT: CauseFacts(
        "The program ended with an exit code other than 0", (LAUNCHER,)
    ),
    Cause.BAD_RESULT: CauseFacts(
        "The result lacks something, or is wrong as the program itself says; or the logs lack a "
        "value that is to be read from them",
        (LAUNCHER,),
        exit_code=65,
    ),
    Cause.MISSING_DATA: CauseFacts("A file that it reads is not there", (LAUNCHER,), exit_code=66),
    Cause.UNSUPPORTED: CauseFacts(
        "This machine cannot run the point; the run counts as unsupported and not as failed",
        (LAUNCHER,), exit_code=69,
    ),
    Cause.DISK_FULL: CauseFacts("A disk is full, or a quota used up", (LAUNCHER, CALL)),
    Cause.KILLED: CauseFacts(
        "A signal ended the program or a process that reads its data, or the launcher before it "
        "had written a result",
        (LAUNCHER, CALL),
    ),
    Cause.SUSPENDED: CauseFacts(
        "The job was suspended meanwhile: its times are not the program's",
        (LAUNCHER, SLURM), NextJob.SAME,
    ),
    Cause.LAUNCH_FAILED: CauseFacts(
        "srun could not start the program or lost a node, a rank never joined the others, the port "
        "where they meet was taken, or the job is gone from Slurm",
        (LAUNCHER, CALL), NextJob.ELSEWHERE, exit_code=75,
    ),
    Cause.EXCHANGE_TIMEOUT: CauseFacts(
        "Ranks waited for another in NCCL or Gloo until the framework's own timeout, and no rank "
        "says why",
        (LAUNCHER,), NextJob.SAME_ONCE,
    ),
    Cause.EXCHANGE_FAILED: CauseFacts(
        "NCCL or Gloo failed (network, driver), and no rank ended before of something else",
        (LAUNCHER,), NextJob.SAME_ONCE,
    ),
    Cause.GPU_FAULT: CauseFacts(
        "A GPU reported an error of its memory or links that it cannot correct",
        (LAUNCHER,), NextJob.ELSEWHERE,
    ),
    Cause.NODE_FAIL: CauseFacts(
        "A node of the job was lost", (SLURM,), NextJob.ELSEWHERE,
        of_slurm="{job} lost a node of {nodes}",
    ),
    Cause.BOOT_FAIL: CauseFacts(
        "A node of the job did not boot", (SLURM,), NextJob.ELSEWHERE,
        of_slurm="{job}: a node of {nodes} did not boot",
    ),
    Cause.PREEMPTED: CauseFacts(
        "Another job took the place of this one", (SLURM,), NextJob.SAME,
        of_slurm="{job} was preempted by another job",
    ),
    Cause.CANCELLED: CauseFacts(
        "A user, or who runs the machine, cancelled the job", (SLURM,),
        of_slurm="{job} was cancelled{by}",
    ),
    Cause.DEADLINE: CauseFacts(
        "The job could not end before its deadline", (SLURM,),
        of_slurm="{job} missed its deadline",
    ),
    Cause.NOT_SUBMITTED: CauseFacts("sbatch refused the job", (CALL,)),
    Cause.BAD_RECORD: CauseFacts(
        "The record or its samples are damaged, or no table can be made of them: set aside under "
        "another name", (CALL,)
    ),
    Cause.UNFINISHED: CauseFacts(
        "The imported run was cut or aborted; it counts as unfinished and not as failed", (IMPORT,)
    ),
    Cause.NOT_STATED: CauseFacts(
        "The imported run failed, and its source does not say why", (IMPORT,)
    ),
    Cause.UNKNOWN: CauseFacts("`failure.json` cannot be read", (CALL,)),
}  # fmt: skip
_UNHEARD_OF = CauseFacts("", ())
# What a native program says by its exit code beyond "wrong".
OF_EXIT_CODE = {
    facts.exit_code: Cause(cause) for cause, facts in _FACTS.items() if facts.exit_code is not None
}


def facts_of(cause: str) -> CauseFacts:
    """What is known of a cause; of one that this version does not have, that it lies in the run and
    that no other job is worth it."""
    return _FACTS.get(cause, _UNHEARD_OF)
