"""Jobs that earlier calls have left in the queue: waited for, or cancelled."""

import sys
import time
from pathlib import Path

from scalesweep.core.formatting import counted
from scalesweep.slurm.commands import PATIENCE_S, LiveJob, ask, live_jobs
from scalesweep.slurm.job_identity import is_run, job_name

SHORTEST_S, LONGEST_S = 2.0, 30.0
LEFT_TO_RUN = "`scalesweep run` waits for them, `scalesweep cancel` ends them"


def jobs_in_queue(runs_folder: Path) -> list[LiveJob]:
    """This user's jobs for the runs in a folder. Raises UserError if Slurm does not answer."""
    name = job_name(runs_folder)
    return [job for job in live_jobs(PATIENCE_S) if job.name == name and is_run(job.comment)]


def await_jobs(runs_folder: Path) -> None:
    """Wait until no job is in the queue; one line when it begins. Ctrl-C leaves the jobs there.

    Raises UserError if Slurm does not answer, SystemExit at Ctrl-C.
    """
    left, pause_s = "", SHORTEST_S
    try:
        while jobs := jobs_in_queue(runs_folder):
            if not left:
                left = f"{counted(len(jobs), 'job')} of an earlier call"
                print(f"waiting for {left} in Slurm's queue", file=sys.stderr, flush=True)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_S)
    except KeyboardInterrupt:
        sys.exit(f"error: interrupted: {left} may be in Slurm's queue; {LEFT_TO_RUN}")


def cancel_jobs(runs_folder: Path) -> int:
    """Cancel all jobs of the runs in a folder; how many there were. Raises UserError."""
    jobs = jobs_in_queue(runs_folder)
    if jobs:
        ask("scancel", "--quiet", *(str(job.job_id) for job in jobs))
    return len(jobs)
