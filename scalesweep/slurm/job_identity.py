"""By what a Slurm job is known to be ours, whoever submitted it and from wherever.

All jobs of a site's runs in a results folder have one name, which holds a digest of the folder's
real path: two clones that share a results folder see each other's jobs, two results folders never
do, and jobs of a killed Snakemake are still in queue and accounting by that name. Which run a job
is of its comment says, which Snakemake's Slurm plugin makes of the rule and its wildcards, and,
as many accountings keep no comments, the folder that its log lies in.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from scalesweep.core.files import digest_of

PREFIX = "scalesweep_"
# In the folder of a site's runs, as old as the first submission of a job for one of them.
SINCE = ".slurm_since"


def job_name(runs_folder: Path) -> str:
    """The name of the Slurm jobs of the runs in ``runs_folder``, which is of one site."""
    return f"{PREFIX}{digest_of(str(runs_folder.resolve()), 6)}"


def job_comment(rule: str, *wildcards: str) -> str:
    """The comment that the plugin gives to the job of a rule."""
    return f"rule_{rule}_wildcards_{joined(*wildcards)}"


def run_of(comment: str, run_ids: Collection[str]) -> str | None:
    """Which of these runs (a set or the like) a job's comment names; None if it is another's.

    Before the id the comment has the folder of the runs, as the call that submitted it spelled it.
    """
    return _last_part(comment, run_ids) if is_run(comment) else None


def _last_part(text: str, run_ids: Collection[str]) -> str | None:
    """The run that a text ends with, after a ``_``."""
    place = 0
    while place := text.find("_", place) + 1:
        if (run_id := text[place:]) in run_ids:
            return run_id
    return None


def is_run(comment: str) -> bool:
    """Whether a job is of some run, and not of staging."""
    return comment.startswith("rule_run_")


def stages_into(comment: str, data: Path) -> bool:
    """Whether a job makes a data set in the folder ``data``, for whatever results folder."""
    return comment.startswith(f"{job_comment('stage', str(data.resolve()))}_")


def joined(*wildcards: str) -> str:
    """Wildcards as the plugin writes them in comments and in the names of log folders."""
    return "_".join(wildcards).replace("/", "_")


def logs_folder(runs_folder: Path) -> Path:
    """Where the logs of a campaign's jobs lie: ``rule_run/<...site>_<run id>/<job id>.log``."""
    return runs_folder.parents[1] / "logs" / "slurm"


def logs_of(runs_folder: Path, run_ids: Collection[str]) -> Iterator[tuple[str, int, Path]]:
    """Run, job and log of each job of these runs (a set or the like) that has begun."""
    for folder in (logs_folder(runs_folder) / "rule_run").glob(f"*{runs_folder.name}_*"):
        if run_id := _last_part(folder.name, run_ids):
            for log in folder.glob("*.log"):
                if log.stem.isdecimal():
                    yield run_id, int(log.stem), log


def note_first_submission(runs_folder: Path) -> None:
    """Leave the time from which the accounting may have jobs of these runs. Raises OSError."""
    runs_folder.mkdir(parents=True, exist_ok=True)
    (runs_folder / SINCE).open("a").close()


def first_submission(runs_folder: Path) -> str | None:
    """That time, UTC as sacct takes it; None if no job was submitted."""
    try:
        return sacct_time((runs_folder / SINCE).stat().st_mtime)
    except OSError:
        return None


def sacct_time(seconds: float) -> str:
    """A time since the epoch as sacct takes it, in UTC: an hour earlier, for clocks differ."""
    return datetime.fromtimestamp(seconds - 3600, UTC).strftime("%Y-%m-%dT%H:%M:%S")
