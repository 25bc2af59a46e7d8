"""The executor of profiles/slurm and of other batch systems: a campaign's runs are jobs.

A profile of another batch system than Slurm has three commands, which
``scalesweep.smk.batch_queue`` calls.

Snakemake imports every module of such a name, at top level, before it parses the command line, so
this package lies apart from ``scalesweep`` and imports nothing of it. The Snakefile sets what knows
the campaign, ``Executor.rules`` and ``Executor.queue``. What differs from other executors:

* A job runs the launcher and no Snakemake.
* While Slurm does not answer, or takes no more jobs of this user, a submission is tried again,
  unless the job is in the queue in spite of it.
* Which jobs are over one ``squeue`` for all says.
* A run that has failed is an error only if another job may end better; else it is over, and what
  waits for it begins.
* SIGTERM leaves the jobs in the queue, Ctrl-C cancels them.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Optional

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

from snakemake_executor_plugin_scalesweep.config_files import explain_config_files

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
)

# Snakemake imports this at every start, before it reads the files of --configfile.
explain_config_files()

# How long Slurm may be away before a submission is given up, and how long the queue is left alone
# at most.
PATIENCE_S, LONGEST_S = 600.0, 30.0
_TICK_S = 0.2

_SUBMITS = (
    "Submits the script that is appended, and prints the job's id. Filled in: {resources.NAME} for "
    "nodes, tasks, tasks_per_node, cpus_per_task, cpus_per_node, slots, mem_mb (of a node), gpus "
    "(of a node), runtime (minutes)"
)
_LISTS = "Prints the ids of the jobs in the queue, a line each"
_CANCELS = "Cancels the jobs whose ids are appended"


@dataclass
class ExecutorSettings(ExecutorSettingsBase):  # type: ignore[misc]  # untyped
    """The commands of a batch system. (Snakemake calls what it finds in Optional.)"""

    submit_cmd: Optional[str] = field(default=None, metadata={"help": _SUBMITS})  # noqa: UP045
    queue_cmd: Optional[str] = field(default=None, metadata={"help": _LISTS})  # noqa: UP045
    cancel_cmd: Optional[str] = field(default=None, metadata={"help": _CANCELS})  # noqa: UP045


class Executor(RemoteExecutor):  # type: ignore[misc]  # untyped
    """Submits the jobs of a campaign, and looks after them."""

    rules: ClassVar[Any] = None  # scalesweep.smk.job_rules.JobRules: what jobs run
    # scalesweep.smk.submission.Submission, or batch_queue.BatchQueue: what becomes of them.
    queue: ClassVar[Any] = None
    # Set when this Snakemake is to end at once, its jobs left to the next one.
    leaving: ClassVar[threading.Event] = threading.Event()

    def __post_init__(self) -> None:
        """Nothing is in the queue yet."""
        if self.queue is None:
            raise WorkflowError("this profile is for the Snakefile of scalesweep alone")
        if hasattr(self.queue, "commands"):  # of another batch system
            settings = self.queue.commands = self.workflow.executor_settings
            self.queue.latency_s = self.workflow.execution_settings.latency_wait
            for name, command in vars(settings).items():
                if not command:
                    raise WorkflowError(f"the profile lacks scalesweep-{name.replace('_', '-')}")
        self._submitting = ThreadPoolExecutor(max_workers=2)
        # Set when jobs are called off: a submission that waits for Slurm waits no more.
        self._ending = threading.Event()
        # Jobs in the queue, by id: Snakemake has no list of them while they are looked at.
        self._live: dict[int, SubmittedJobInfo] = {}
        self._said = ""
        self._quiet_since = time.monotonic()

    def run_job(self, job: Any) -> None:
        """Have a job submitted by a thread: sbatch may take its time."""
        self._submitting.submit(self._submit, job)

    def _submit(self, job: Any) -> None:
        """Submit a job, after what it reads is written; one that is refused has failed."""
        if self._ending.is_set():
            return
        try:
            self.rules.before(job)
            why = self._until_taken(job)
        except OSError as error:
            why = f"{error.strerror or error}: {error.filename}"
        except Exception as error:
            why = str(error)
        if why:
            self._end(SubmittedJobInfo(job), *self.queue.refuse(job, why))

    def _until_taken(self, job: Any) -> str:
        """Submit a job until Slurm takes it; why it does not, or nothing."""
        last, pause_s = time.monotonic() + PATIENCE_S, 1.0
        while True:
            job_id, said = self.queue.submit(job, self.rules.command(job))
            if job_id is not None:
                self._register(job, job_id)
                return ""
            # Ctrl-C ends sbatch too, maybe before this thread learns of it.
            if self._ending.is_set() or (not said and self._ending.wait(_TICK_S)):
                self._take_up(job)
                return ""
            lines: list[str] = said.strip().splitlines() or ["no reason given"]
            # The last line says what came of it; what precedes may be a warning of the site's.
            why = lines[-1].removeprefix("sbatch: ").removeprefix("error: ")
            if not self.queue.passes(said, len(self._live)) or time.monotonic() >= last:
                return why
            if why != self._said:
                self._said = why
                self.logger.warning(f"sbatch: {why}; submitting again until Slurm takes it")
            self._ending.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_S)
            if self._take_up(job) or self._ending.is_set():
                return ""
            if self._live:  # their ends make room
                last = time.monotonic() + PATIENCE_S

    def _take_up(self, job: Any) -> bool:
        """Register a job that sbatch has left in the queue without saying so; whether it has."""
        try:
            job_id = self.queue.queued(job, self._live, not self._ending.is_set())
        except Exception:
            if not self._ending.is_set():
                raise
            return False
        if job_id is not None:
            self._register(job, job_id)
        return job_id is not None

    def _register(self, job: Any, job_id: int) -> None:
        self._live[job_id] = info = SubmittedJobInfo(job, str(job_id))
        self.report_job_submission(info)

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that are over, yield the others."""
        least_s = self.workflow.remote_execution_settings.seconds_between_status_checks
        self.next_seconds_between_status_checks = least_s
        if not active_jobs:  # nor may ``__post_init__`` have ended
            return
        ended = await asyncio.to_thread(self._ended, active_jobs)
        for info in active_jobs:
            job_id = int(info.external_jobid or 0)
            if job_id not in ended:
                yield info
                continue
            self._live.pop(job_id, None)
            self._quiet_since = time.monotonic()
            if ended[job_id]:
                self.rules.release(info.job)
                self.report_job_success(info)
            else:
                await asyncio.to_thread(self._judge, info, job_id)
        # Of a wait, a tenth at most is idle.
        idle_s = (time.monotonic() - self._quiet_since) / 10
        self.next_seconds_between_status_checks = max(least_s, min(idle_s, LONGEST_S))

    def _ended(self, active_jobs: Collection[SubmittedJobInfo]) -> Mapping[int, bool]:
        """Those of the jobs that are over: whether they left what they were to make."""
        try:
            jobs = {int(info.external_jobid or 0): info.job for info in active_jobs}
            ended: Mapping[int, bool] = self.queue.ended(jobs)
        except Exception as error:  # of a full disk, say: the jobs are looked at again
            self.logger.error(f"Slurm jobs: {error}")
            return {}
        return ended

    def _judge(self, info: SubmittedJobInfo, job_id: int) -> None:
        """Ask whether another job may end better than this one, which has failed."""
        try:
            verdict = self.queue.judge(info.job, job_id)
        except Exception as error:
            verdict = False, f"Slurm job {job_id}: {error}"
        self._end(info, *verdict)

    def _end(self, info: SubmittedJobInfo, over: bool, line: str) -> None:
        """Say how a job failed, and tell the scheduler: it is ``over``, or an error, which the
        scheduler tries again as often as the rule allows."""
        (self.logger.error if over else self.logger.warning)(line)
        if over and self.rules.release(info.job):
            self.report_job_success(info)
        else:
            self.report_job_error(info)

    def print_job_error(self, job_info: SubmittedJobInfo, msg: str | None = None, **_: Any) -> None:
        """Nothing: ``_end`` has said it in a line."""

    async def sleep(self) -> None:
        """Wait until the jobs are to be looked at again, or until there is no more to wait for."""
        last = time.monotonic() + self.next_seconds_between_status_checks
        while self.wait and time.monotonic() < last:
            await asyncio.sleep(_TICK_S)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """Cancel what is in the queue, unless it is left to the next Snakemake."""
        self._ending.set()
        self._call_off(known=())
        known = set(self._live)
        # What is being submitted comes into the queue only now.
        self._submitting.shutdown(wait=True, cancel_futures=True)
        self._call_off(known)
        if self.leaving.is_set() and self._live:
            self.logger.info(f"{len(self._live)} job(s) stay in Slurm's queue: {self.queue.LEFT}")

    def _call_off(self, known: Collection[int]) -> None:
        """Cancel the jobs in the queue that are not ``known``."""
        jobs = [job_id for job_id in self._live if job_id not in known]
        self.queue.call_off(jobs, self.leaving.is_set())

    def shutdown(self) -> None:
        """End, without the submissions that have not begun."""
        self._submitting.shutdown(wait=True, cancel_futures=True)
        super().shutdown()
