"""What happens around the jobs of a campaign in a batch system other than Slurm."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scalesweep.core.causes import Cause
from scalesweep.core.record import FAILURE, RECORD
from scalesweep.slurm.failure import leave_failure
from scalesweep.smk.job_rules import JobRules

RUN = "run"


@dataclass(frozen=True)
class BatchHooks:
    """The hooks of the executor ``scalesweep-batch``, for the rules ``run`` and ``stage``."""

    jobs: JobRules

    def before(self, rule: str, wildcards: Mapping[str, str]) -> None:
        """Leave the job's order. Raises UserError or OSError."""
        if rule == RUN:
            self.jobs.leave_order(wildcards["run_id"])

    def command(self, rule: str, wildcards: Mapping[str, str]) -> str:
        """What the job runs; a run that fails leaves failure.json, and its job succeeds."""
        if rule == RUN:
            return self.jobs.run_job(wildcards["runs"], wildcards["run_id"], forgive=True)
        return self.jobs.staging_job(wildcards["folder"], wildcards["files"])

    def is_made(self, rule: str, wildcards: Mapping[str, str]) -> bool:
        """Whether a job has left what it was to make."""
        return self._made(rule, wildcards).exists()

    def refused(self, rule: str, wildcards: Mapping[str, str], why: str) -> tuple[bool, str]:
        """Note a job that was not submitted: whether what waits for it may begin, and a line."""
        return self._failed(rule, wildcards, Cause.NOT_SUBMITTED, why)

    def lost(self, rule: str, wildcards: Mapping[str, str], job_id: str) -> tuple[bool, str]:
        """The same of a job that left the queue and nothing else: it was killed, or cancelled."""
        why = f"job {job_id} left the queue before the launcher wrote a result"
        return self._failed(rule, wildcards, Cause.KILLED, why)

    def _failed(
        self, rule: str, wildcards: Mapping[str, str], cause: str, why: str
    ) -> tuple[bool, str]:
        if rule != RUN:
            return False, f"staging {wildcards['folder']}: {why}"
        run_id, folder = wildcards["run_id"], Path(wildcards["runs"], wildcards["run_id"])
        if not (folder / RECORD).exists():
            leave_failure(folder, run_id, cause, why)
        marker = self._made(rule, wildcards)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        return True, f"{run_id}: {cause}: {why} ({folder / FAILURE})"

    def _made(self, rule: str, wildcards: Mapping[str, str]) -> Path:
        if rule != RUN:
            return Path(wildcards["folder"], f"staged-{wildcards['files']}")
        return Path(wildcards["runs"], self.jobs.context.markers_of_call, wildcards["run_id"])
