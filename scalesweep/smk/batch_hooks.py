"""What happens around the jobs of a campaign in a batch system other than Slurm."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.core.causes import Cause
from scalesweep.core.record import FAILURE, RECORD
from scalesweep.slurm.failure import leave_failure
from scalesweep.smk.job_rules import JobRules
from scalesweep.smk.submission import RUN


@dataclass(frozen=True)
class BatchHooks:
    """What becomes of jobs of the executor ``scalesweep-batch``."""

    rules: JobRules

    def refuse(self, job: Any, why: str) -> tuple[bool, str]:
        """Note a job that was not submitted: whether what waits for it may begin, and a line."""
        return self._failed(job, Cause.NOT_SUBMITTED, why)

    def lost(self, job: Any, job_id: str) -> tuple[bool, str]:
        """The same of a job that left the queue and nothing else: it was killed, or cancelled."""
        why = f"job {job_id} left the queue before the launcher wrote a result"
        return self._failed(job, Cause.KILLED, why)

    def _failed(self, job: Any, cause: str, why: str) -> tuple[bool, str]:
        words = job.wildcards_dict
        if job.name != RUN:
            return False, f"staging {words['folder']}: {why}"
        folder = Path(self.rules.context.runs_folder, words["run_id"])
        if not (folder / RECORD).exists():
            leave_failure(folder, words["run_id"], cause, why)
        return self.rules.release(job), f"{words['run_id']}: {cause}: {why} ({folder / FAILURE})"
