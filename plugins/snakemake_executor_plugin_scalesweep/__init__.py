"""The executor of ``snakemake --profile slurm``: Snakemake's Slurm executor, with three hooks.

Snakemake imports an executor by its name, at top level, before it parses the command line, so this
package lies apart from ``scalesweep`` and imports nothing of it: tools/setup.sh puts this folder on
the path of .venv. The Snakefile says what the hooks do (``Executor.hooks``).

* Before a job is submitted, what it reads is written (``Hooks.before``).
* Once it has an id, the id is kept (``Hooks.submitted``).
* When it has failed, the cause decides whether it is worth another try (``Hooks.retry``). This may
  wait for Slurm's accounting, so it is asked by the thread that looks after the jobs
  (``report_job_error``), and not under the lock of Snakemake's scheduler (``handle_job_error``).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from snakemake_executor_plugin_scalesweep.config_files import explain_config_files

__all__ = ["Executor", "ExecutorSettings", "Hooks", "common_settings"]

# Snakemake imports this at every start, before it reads the files of --configfile.
explain_config_files()


class Hooks(Protocol):
    """What the workflow does when a job of ``rule`` with these wildcards is submitted or fails.

    ``attempt`` counts from 1.
    """

    def before(self, rule: str, wildcards: Mapping[str, str], attempt: int) -> None:
        """Write what the job will read. Whatever this raises fails the job, which is not sent."""

    def submitted(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int, log: str
    ) -> None:
        """Keep the id of the job and the path of the log that Slurm writes."""

    def retry(self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int) -> bool:
        """Whether another job may end better than this one, which has failed."""


class Executor(SlurmExecutor):  # type: ignore[misc]  # untyped
    """Snakemake's Slurm executor. Without ``hooks`` nothing differs but that nothing is retried."""

    hooks: ClassVar[Hooks | None] = None

    def __post_init__(self, test_mode: bool = False) -> None:
        """As the Slurm executor does, and none of its jobs has failed."""
        super().__post_init__(test_mode)
        self._worth_another: set[Any] = set()

    def run_job(self, job: Any) -> None:
        """Submit a job, after the hook."""
        try:
            if self.hooks is not None:
                self.hooks.before(job.name, job.wildcards_dict, job.attempt)
        except Exception as error:
            self.report_job_error(SubmittedJobInfo(job), msg=f"not submitted: {error}. ")
            return
        super().run_job(job)

    def report_job_submission(self, job_info: SubmittedJobInfo, register_job: bool = True) -> None:
        """Register a job that Slurm has taken, after the hook."""
        job, job_id = job_info.job, job_info.external_jobid
        if self.hooks is not None and job_id is not None:
            log = str((job_info.aux or {}).get("slurm_logfile") or "")
            try:
                self.hooks.submitted(job.name, job.wildcards_dict, job.attempt, int(job_id), log)
            except OSError as error:  # the job is in the queue all the same
                self.logger.warning(f"Slurm job {job_id}: cannot be noted: {error}")
        super().report_job_submission(job_info, register_job=register_job)

    def report_job_error(
        self, job_info: SubmittedJobInfo, msg: str | None = None, **kwargs: Any
    ) -> None:
        """Decide on another try, then tell the scheduler; a job that never ran gets none."""
        job, job_id = job_info.job, job_info.external_jobid
        if self.hooks is not None and job_id is not None:
            try:
                if self.hooks.retry(job.name, job.wildcards_dict, job.attempt, int(job_id)):
                    self._worth_another.add(job)
            except Exception as error:
                self.logger.error(f"Slurm job {job_id}: no retry: {error}")
        super().report_job_error(job_info, msg=msg, **kwargs)

    def handle_job_error(self, job: Any) -> None:
        """If another attempt would not help, count this one as the last (rule's ``retries``)."""
        super().handle_job_error(job)
        if job in self._worth_another:
            self._worth_another.discard(job)
        else:
            job.attempt = max(job.attempt, job.restart_times + 1)
