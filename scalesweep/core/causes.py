"""Why a run has no result: each cause, who finds it, and what the next job of the run asks for.

A cause is added here: a member, with which it has its place in retries and in the tables of the
documentation (``tools/pages.py``). Only the code that finds it is elsewhere, unless an exit code or
a state of Slurm's does. Standard library only, for the launcher.
"""

from enum import Enum, StrEnum
from typing import NamedTuple, Self


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


class Cause(StrEnum):
    """Why a run has no result, as failure.json, plan.json and the report name it.

    Exit codes are those of sysexits.h: EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_OSERR,
    EX_TEMPFAIL; 79 is the first behind them.
    """

    facts: CauseFacts

    def __new__(cls, name: str, facts: CauseFacts) -> Self:
        """The cause ``name`` with what is known of it."""
        cause = str.__new__(cls, name)
        cause._value_, cause.facts = name, facts
        return cause

    # fmt: off
    TIMEOUT = "TIMEOUT", CauseFacts(
        "It was not done at its time limit, and had made progress or does not say whether it does "
        "(external programs)",
        (LAUNCHER, SLURM), NextJob.MORE_TIME, used_up=Given.TIME, of_slurm="{job} reached {limit}",
    )
    HANG = "HANG", CauseFacts(
        "No rank made progress during the last quarter of its time limit",
        (LAUNCHER,), NextJob.SAME_ONCE, used_up=Given.TIME,
    )
    OUT_OF_MEMORY = "OUT_OF_MEMORY", CauseFacts(
        "A process or step was killed for its memory, or the program got no more of the host's",
        (LAUNCHER, SLURM), NextJob.MORE_MEMORY, used_up=Given.MEMORY, exit_code=71,
    )
    GPU_OUT_OF_MEMORY = "GPU_OUT_OF_MEMORY", CauseFacts(
        "The memory of a GPU was not enough; more memory of the host would not help",
        (LAUNCHER,), exit_code=79,
    )
    NON_ZERO_EXIT = "NON_ZERO_EXIT", CauseFacts(
        "The program ended with an exit code other than 0", (LAUNCHER,)
    )
    BAD_RESULT = "BAD_RESULT", CauseFacts(
        "The result lacks something, or is wrong as the program itself says; or the logs lack a "
        "value that is to be read from them",
        (LAUNCHER,), exit_code=65,
    )
    MISSING_DATA = "MISSING_DATA", CauseFacts(
        "A file that it reads is not there", (LAUNCHER,), exit_code=66
    )
    UNSUPPORTED = "UNSUPPORTED", CauseFacts(
        "This machine cannot run the point; the run counts as unsupported and not as failed",
        (LAUNCHER,), exit_code=69,
    )
    DISK_FULL = "DISK_FULL", CauseFacts("A disk is full, or a quota used up", (LAUNCHER, CALL))
    KILLED = "KILLED", CauseFacts(
        "A signal ended the program or a process that reads its data, or the launcher before it "
        "had written a result",
        (LAUNCHER, CALL),
    )
    SUSPENDED = "SUSPENDED", CauseFacts(
        "The job was suspended meanwhile: its times are not the program's",
        (LAUNCHER, SLURM), NextJob.SAME,
    )
    LAUNCH_FAILED = "LAUNCH_FAILED", CauseFacts(
        "srun could not start the program or lost a node, a rank never joined the others, the port "
        "where they meet was taken, or the job is gone from Slurm",
        (LAUNCHER, CALL), NextJob.ELSEWHERE, exit_code=75,
    )
    EXCHANGE_TIMEOUT = "EXCHANGE_TIMEOUT", CauseFacts(
        "Ranks waited for another in NCCL or Gloo until the framework's own timeout, and no rank "
        "says why",
        (LAUNCHER,), NextJob.SAME_ONCE,
    )
    EXCHANGE_FAILED = "EXCHANGE_FAILED", CauseFacts(
        "NCCL or Gloo failed (network, driver), and no rank ended before of something else",
        (LAUNCHER,), NextJob.SAME_ONCE,
    )
    GPU_FAULT = "GPU_FAULT", CauseFacts(
        "A GPU reported an error of its memory or links that it cannot correct",
        (LAUNCHER,), NextJob.ELSEWHERE,
    )
    NODE_FAIL = "NODE_FAIL", CauseFacts(
        "A node of the job was lost", (SLURM,), NextJob.ELSEWHERE,
        of_slurm="{job} lost a node of {nodes}",
    )
    BOOT_FAIL = "BOOT_FAIL", CauseFacts(
        "A node of the job did not boot", (SLURM,), NextJob.ELSEWHERE,
        of_slurm="{job}: a node of {nodes} did not boot",
    )
    PREEMPTED = "PREEMPTED", CauseFacts(
        "Another job took the place of this one", (SLURM,), NextJob.SAME,
        of_slurm="{job} was preempted by another job",
    )
    CANCELLED = "CANCELLED", CauseFacts(
        "A user, or who runs the machine, cancelled the job", (SLURM,),
        of_slurm="{job} was cancelled{by}",
    )
    DEADLINE = "DEADLINE", CauseFacts(
        "The job could not end before its deadline", (SLURM,),
        of_slurm="{job} missed its deadline",
    )
    NOT_SUBMITTED = "NOT_SUBMITTED", CauseFacts("sbatch refused the job", (CALL,))
    BAD_RECORD = "BAD_RECORD", CauseFacts(
        "The record or its samples are damaged, or no table can be made of them: set aside under "
        "another name", (CALL,)
    )
    UNFINISHED = "UNFINISHED", CauseFacts(
        "The imported run was cut or aborted; it counts as unfinished and not as failed", (IMPORT,)
    )
    NOT_STATED = "NOT_STATED", CauseFacts(
        "The imported run failed, and its source does not say why", (IMPORT,)
    )
    UNKNOWN = "UNKNOWN", CauseFacts("`failure.json` cannot be read", (CALL,))
    # fmt: on


# What a native program says by its exit code beyond "wrong".
OF_EXIT_CODE = {it.facts.exit_code: it for it in Cause if it.facts.exit_code is not None}


def facts_of(cause: str) -> CauseFacts:
    """What is known of a cause; of any other word (a state of Slurm's) nothing."""
    known = Cause.__members__.get(cause)
    return known.facts if known else CauseFacts("", ())
