"""The runs of a folder that are not to be started any more, whatever has been submitted for them.

Written by the Snakemake at work there, once enough runs like them have failed, and read by each
launcher before its run. Standard library only, as all that runs in a job.
"""

from collections.abc import Iterable
from pathlib import Path

from scalesweep.core.files import write_atomic

LEFT_OUT = ".left_out"  # in the folder of a site's runs: an id in each line


def leave_out(runs: Path, run_ids: Iterable[str]) -> None:
    """Have these runs not start, besides those that are left out already. Raises OSError."""
    every = sorted({*left_out(runs), *run_ids})
    runs.mkdir(parents=True, exist_ok=True)
    write_atomic(runs / LEFT_OUT, "".join(f"{run_id}\n" for run_id in every), durable=False)


def left_out(runs: Path) -> frozenset[str]:
    """Ids of the runs that are left out."""
    try:
        return frozenset((runs / LEFT_OUT).read_text().split())
    except (OSError, UnicodeDecodeError):
        return frozenset()


def leave_none_out(runs: Path) -> None:
    """Have every run start again, in another call."""
    (runs / LEFT_OUT).unlink(missing_ok=True)
