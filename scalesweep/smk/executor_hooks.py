"""What happens around the Slurm jobs of a campaign (``plugins/``, ``Executor.hooks``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scalesweep.planning.submission import Submission
from scalesweep.slurm.job_file import SubmittedJob, note_submitted
from scalesweep.slurm.job_identity import job_name, note_first_submission
from scalesweep.smk.job_rules import JobRules

RUN, STAGE = "run", "stage"


@dataclass(frozen=True)
class CampaignHooks:
    """The hooks of the executor, for the jobs of the rules ``run`` and ``stage``."""

    jobs: JobRules
    submission: Submission

    @property
    def job_name(self) -> str:
        """The name of every job of the campaign's runs, which the next call knows them by."""
        return job_name(self.submission.campaign.runs_folder)

    def before(self, rule: str, wildcards: Mapping[str, str], attempt: int) -> None:
        """Leave the job's order. Raises UserError or OSError."""
        note_first_submission(self.submission.campaign.runs_folder)
        if rule == RUN:
            self.jobs.leave_order(wildcards["run_id"], attempt)
        elif rule == STAGE:
            self.jobs.leave_staging_order(wildcards["folder"], wildcards["files"])

    def submitted(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int, log: str
    ) -> None:
        """Note the job in its run's folder. Raises OSError."""
        if rule == RUN:
            folder = Path(wildcards["runs"], wildcards["run_id"])
            note_submitted(folder, SubmittedJob(job_id, attempt, log))

    def retry(self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int) -> bool:
        """Whether the cause of a run's failure lets another job end better."""
        return rule == RUN and self.submission.retry(wildcards["run_id"], attempt, job_id)
