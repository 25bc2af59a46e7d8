"""The end of a Snakemake that SIGTERM tells to go, its Slurm jobs left to the next one."""

import os
import signal
import sys
from typing import Any, NoReturn


def leave_on_sigterm(executor: Any) -> None:
    """Have SIGTERM end this Snakemake within seconds, its jobs left to the next one.

    Snakemake would wait for the end of every job, for which a batch system or a user that is
    logging off gives it no time. ``executor`` is the class of the executor.
    """

    def leave(number: int, _frame: Any) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        executor.leaving.set()
        sys.exit(128 + number)  # Snakemake's scheduler shuts down its executor

    signal.signal(signal.SIGTERM, leave)


def leave_now() -> NoReturn:
    """End this Snakemake, as SIGTERM would. What it started here ends with it
    (``core.orphans.end_with_snakemake``), and so does what it holds of the results folder.

    An exit of Python's would wait for the threads of local jobs.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(128 + signal.SIGTERM)
