"""Snakemake's command line, which looks at its Slurm jobs every second.

The executor looks at them every five seconds at most, which is what many jobs of the tests take.
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
