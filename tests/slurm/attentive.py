"""Snakemake's command line, which looks at its Slurm jobs every second.

The executor plugin looks ten seconds later each time no job has ended, up to three minutes. Half of
what the tests of real jobs took was spent waiting for that.
"""

import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

SECONDS = 1
INTERVAL = "next_seconds_between_status_checks"

if __name__ == "__main__":
    assert isinstance(vars(RemoteExecutor)[INTERVAL], property)
    setattr(RemoteExecutor, INTERVAL, property(lambda _: SECONDS, lambda *_: None))
    sys.exit(main())
