"""The executor of ``snakemake --profile slurm``: Snakemake's Slurm executor, with hooks.

Snakemake imports an executor by its name, at top level, before it parses the command line, so this
package lies apart from ``scalesweep`` and imports nothing of it: tools/setup.sh puts this folder on
the path of .venv. The Snakefile says what the hooks do (``Executor.hooks``). Without them this is
Snakemake's Slurm executor.

* Before a job is submitted, what it reads is written (``Hooks.before``).
* The hooks say what the job runs (``Hooks.command``), where the Slurm executor has it start
  Snakemake, which starts Snakemake.
* While Slurm does not answer, a submission is tried again (``Hooks.is_away``), unless the job is
  in the queue in spite of it (``Hooks.queued``).
* Once it has an id, the id is kept (``Hooks.submitted``).
* Which jobs are over the hooks say, not the plugin of Slurm (``Hooks.ended``): that one compares
  sacct's ``CANCELLED by 0`` with ``CANCELLED``, and waits for ever.
* When a job has failed, the cause decides whether it is worth another try (``Hooks.failed``). Both
  are asked by the thread that looks after the jobs, and not under the lock of Snakemake's scheduler
  (``handle_job_error``).
"""

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings
from snakemake_executor_plugin_slurm.utils import get_job_wildcards
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from snakemake_executor_plugin_scalesweep.config_files import explain_config_files

__all__ = ["Executor", "ExecutorSettings", "Failed", "Hooks", "common_settings"]

# Snakemake imports this at every start, before it reads the files of --configfile.
explain_config_files()

# How long Slurm may be away before a submission is given up, and how long the queue is left alone
# at most.
PATIENCE_S = 600.0
LONGEST_S = 30.0
_TICK_S = 0.2


class Failed(NamedTuple):
    """What comes of a job that failed: whether it is tried again, and a line that says so."""

    again: bool
    line: str


class Hooks(Protocol):
    """What the workflow does when a job of ``rule`` with these wildcards is submitted or ends.

    ``attempt`` counts from 1. ``job_name`` is the name of every job.
    """

    @property
    def job_name(self) -> str:
        """The same in every call, so that Slurm and the next call know whose a job is."""

    def before(self, rule: str, wildcards: Mapping[str, str], attempt: int) -> None:
        """Write what the job will read. Whatever this raises fails the job, which is not sent."""

    def is_away(self, said: str) -> bool:
        """Whether sbatch failed because Slurm does not answer at the moment."""

    def command(self, rule: str, wildcards: Mapping[str, str]) -> str:
        """What the job runs: a line for a shell."""

    def queued(self, rule: str, wildcards: Mapping[str, str]) -> int | None:
        """Id of the job of this Snakemake that sbatch left without saying so."""

    def submitted(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int, log: str
    ) -> None:
        """Keep the id of the job and the path of the log that Slurm writes."""

    def refused(self, rule: str, wildcards: Mapping[str, str], why: str) -> str:
        """Note a job that was not submitted; a line that says so."""

    def ended(self, job_ids: Collection[int]) -> Mapping[int, bool]:
        """Those of these jobs that are over: whether they left what they were to make."""

    def failed(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int, lost: bool
    ) -> Failed:
        """Whether another job may end better than this one, which has failed.

        ``lost``: Slurm has forgotten it, and given its id to another one.
        """

    def called_off(self) -> None:
        """Note that all jobs are cancelled, or left to the next Snakemake."""


class Executor(SlurmExecutor):  # type: ignore[misc]  # untyped
    """Snakemake's Slurm executor, with the workflow's hooks."""

    hooks: ClassVar[Hooks | None] = None
    # Set when this Snakemake is to end at once, its jobs left to the next one.
    leaving: ClassVar[threading.Event] = threading.Event()

    def __post_init__(self, test_mode: bool = False) -> None:
        """As the Slurm executor does, and none of its jobs has failed."""
        super().__post_init__(test_mode)
        if self.hooks is not None:
            self.run_uuid = self.hooks.job_name
        self._worth_another: set[Any] = set()
        # Set when jobs are called off: a submission that waits for Slurm waits no more.
        self._ending = threading.Event()
        # What the Slurm executor reports of submissions that failed, by job.
        self._complaints: dict[Any, str] = {}
        # Jobs in the queue, by id: ``active_jobs`` is empty while they are looked at.
        self._live: dict[int, SubmittedJobInfo] = {}
        # Those whose id another job has got: slurmctld crashed before it had saved its state.
        self._lost: list[SubmittedJobInfo] = []
        # When a job has last been over.
        self._quiet_since = time.monotonic()

    def run_job(self, job: Any) -> None:
        """Submit a job, after the hook; while Slurm does not answer, again."""
        if self.hooks is None:
            super().run_job(job)
            return
        try:
            self.hooks.before(job.name, job.wildcards_dict, job.attempt)
            # The Slurm executor would answer a full disk with a traceback.
            self._log_folder(job).mkdir(parents=True, exist_ok=True)
            why = self._submit(job, self.hooks)
        except OSError as error:
            why = f"{error.strerror or error}: {error.filename}"
        except Exception as error:
            why = str(error)
        if why:
            line = self.hooks.refused(job.name, job.wildcards_dict, why)
            self.report_job_error(SubmittedJobInfo(job), msg=line)

    def _submit(self, job: Any, hooks: Hooks) -> str:
        """Submit a job until Slurm takes it; why it does not, or nothing."""
        last, pause_s = time.monotonic() + PATIENCE_S, 1.0
        while not self._ending.is_set():
            super().run_job(job)
            complaint = self._complaints.pop(job, None)
            if complaint is None:
                break
            why = sbatch_said(complaint)
            if not hooks.is_away(why) or time.monotonic() >= last:
                return why
            self.logger.warning(f"sbatch: {why}; submitting again")
            self._ending.wait(pause_s)
            pause_s = min(2 * pause_s, 15.0)
            job_id = hooks.queued(job.name, job.wildcards_dict)
            if job_id is not None:
                log = {"slurm_logfile": self._log_folder(job) / f"{job_id}.log"}
                self.report_job_submission(SubmittedJobInfo(job, str(job_id), log))
                break
        return ""

    def _log_folder(self, job: Any) -> Any:
        return self.slurm_logdir / f"rule_{job.name}" / get_job_wildcards(job)

    def _report_job_error_threadsafe(self, job_info: SubmittedJobInfo, msg: str) -> None:
        """Keep what the Slurm executor has against a submission, for ``run_job`` to judge."""
        if self.hooks is None:
            super()._report_job_error_threadsafe(job_info, msg)
        else:
            self._complaints[job_info.job] = msg

    def format_job_exec(self, job: Any) -> str:
        """The job's command, without the two Snakemakes that the Slurm executor has it start.

        They took seconds of all nodes of a job, waited for files of this Snakemake that may have
        ended, and did nothing that this one does not do when the job is over.
        """
        if self.hooks is None:
            return str(super().format_job_exec(job))
        return self.hooks.command(job.name, job.wildcards_dict)

    def report_job_submission(self, job_info: SubmittedJobInfo, register_job: bool = True) -> None:
        """Register a job that Slurm has taken, after the hook."""
        job, job_id = job_info.job, job_info.external_jobid
        if self.hooks is not None and job_id is not None:
            if (before := self._live.get(int(job_id))) is not None:
                self._lost.append(before)
            self._live[int(job_id)] = job_info
            log = str((job_info.aux or {}).get("slurm_logfile") or "")
            try:
                self.hooks.submitted(job.name, job.wildcards_dict, job.attempt, int(job_id), log)
            except OSError as error:  # the job is in the queue all the same
                self.logger.warning(f"Slurm job {job_id}: cannot be noted: {error}")
        super().report_job_submission(job_info, register_job=register_job)

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that are over, yield the others."""
        if self.hooks is None:
            async for info in super().check_active_jobs(active_jobs):
                yield info
            return
        ended = await asyncio.to_thread(self._ended, active_jobs)
        for info in active_jobs:
            job_id = int(info.external_jobid or 0)
            if any(info is lost for lost in self._lost):
                self._lost = [lost for lost in self._lost if lost is not info]
                await asyncio.to_thread(self._report_failed, info, job_id, lost=True)
            elif job_id not in ended:
                yield info
            else:
                self._live.pop(job_id, None)
                if ended[job_id]:
                    self.report_job_success(info)
                else:
                    await asyncio.to_thread(self._report_failed, info, job_id)
        if ended or not active_jobs:
            self._quiet_since = time.monotonic()
        # Of a wait, a tenth at most is idle.
        quiet_s = (time.monotonic() - self._quiet_since) / 10
        least_s = self.workflow.executor_settings.init_seconds_before_status_checks
        self.next_seconds_between_status_checks = max(least_s, min(quiet_s, LONGEST_S))

    def _ended(self, active_jobs: list[SubmittedJobInfo]) -> Mapping[int, bool]:
        assert self.hooks is not None
        if not active_jobs:
            return {}
        try:
            return self.hooks.ended([int(info.external_jobid or 0) for info in active_jobs])
        except Exception as error:  # of a full disk, say: the jobs are looked at again
            self.logger.error(f"Slurm jobs: {error}")
            return {}

    def _report_failed(self, info: SubmittedJobInfo, job_id: int, lost: bool = False) -> None:
        """Decide on another try, then tell the scheduler."""
        assert self.hooks is not None
        job = info.job
        try:
            words = (job.name, job.wildcards_dict, job.attempt, job_id, lost)
            verdict = self.hooks.failed(*words)
        except Exception as error:
            verdict = Failed(False, f"Slurm job {job_id}: no retry: {error}")
        if verdict.again:
            self._worth_another.add(job)
        self.report_job_error(info, msg=verdict.line)

    def print_job_error(
        self, job_info: SubmittedJobInfo, msg: str | None = None, **kwargs: Any
    ) -> None:
        """One line, where Snakemake prints the command and the files of the job too."""
        if self.hooks is None:
            super().print_job_error(job_info, msg, **kwargs)
        elif job_info.job in self._worth_another:
            self.logger.warning(msg)
        else:
            self.logger.error(msg)

    def handle_job_error(self, job: Any) -> None:
        """If another attempt would not help, count this one as the last (rule's ``retries``)."""
        super().handle_job_error(job)
        if job in self._worth_another:
            self._worth_another.discard(job)
        else:
            job.attempt = max(job.attempt, job.restart_times + 1)

    async def sleep(self) -> None:
        """Wait until the jobs are to be looked at again, or until there is no more to wait for."""
        last = time.monotonic() + self.next_seconds_between_status_checks
        while self.wait and time.monotonic() < last:
            await asyncio.sleep(_TICK_S)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """Cancel what is in the queue, unless it is left to the next Snakemake."""
        live = self._live if self.hooks is not None else {}
        if self.hooks is not None:
            self.hooks.called_off()
        if not self.leaving.is_set():
            super().cancel_jobs(list(live.values()) or active_jobs)
        elif live:
            self.logger.info(
                f"{len(live)} job(s) stay in Slurm's queue; the next `snakemake --profile slurm` "
                "waits for them"
            )
        self._ending.set()

    def shutdown(self) -> None:
        """End, without the submissions that have not begun."""
        self._job_submission_executor.shutdown(wait=True, cancel_futures=True)
        super().shutdown()


def sbatch_said(complaint: str) -> str:
    """The words of sbatch in what the Slurm executor reports of it, without the command."""
    found = re.search(r"The error message was '(.*?)'\.\n", complaint, re.DOTALL)
    lines = (found[1] if found else complaint).strip().splitlines()
    said = [re.sub(r"^sbatch: (?:error: )?", "", line.strip()) for line in lines if line.strip()]
    # The last line says what came of it; what precedes may be a warning of the site's.
    return said[-1] if said else "no reason given"
