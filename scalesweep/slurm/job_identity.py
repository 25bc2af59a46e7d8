"""By what a Slurm job is known to be ours, whoever submitted it and from wherever.

All jobs of a site's runs in a results folder have one name, which holds a digest of the folder's
real path: two clones that share a results folder see each other's jobs, two results folders never
do, and jobs of a killed Snakemake are still in queue and accounting by that name. Which run a job
is of its comment says, and, as many accountings keep no comments, the folder that its log lies in.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from scalesweep.core.files import digest_of
from scalesweep.core.paths import MARKER

PREFIX = "scalesweep_"
_STAGE = "stage "


def job_name(runs_folder: Path) -> str:
    """The name of the Slurm jobs of the runs in ``runs_folder``, which is of one site."""
    return f"{PREFIX}{digest_of(str(runs_folder.resolve()), 6)}"


def staging_comment(folder: Path) -> str:
    """The comment of a job that makes a data set in this folder; that of a run's job is its id."""
    return f"{_STAGE}{folder.resolve()}"


def is_run(comment: str) -> bool:
    """Whether a job is of some run, and not of staging."""
    return not comment.startswith(_STAGE)


def stages_into(comment: str, data: Path) -> bool:
    """Whether a job makes a data set in the folder ``data``, for whatever results folder."""
    return comment.startswith(f"{staging_comment(data)}/")


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
    return sacct_time(made) if logs_folder(runs_folder).is_dir() else None


def sacct_time(seconds: float) -> str:
    """A time since the epoch as sacct takes it, in UTC: an hour earlier, for clocks differ."""
    return datetime.fromtimestamp(seconds - 3600, UTC).strftime("%Y-%m-%dT%H:%M:%S")
