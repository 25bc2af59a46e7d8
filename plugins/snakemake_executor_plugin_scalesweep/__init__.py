"""The executor of ``snakemake --profile slurm``: Snakemake's Slurm executor, with hooks.

Snakemake imports an executor by its name, at top level, before it parses the command line, so this
package lies apart from ``scalesweep`` and imports nothing of it: the installation puts it on
Python's path. The Snakefile says what the hooks do (``Executor.hooks``). Without them this is
Snakemake's Slurm executor.

* Before a job is submitted, what it reads is written (``Hooks.before``).
* The hooks say what the job runs (``Hooks.command``), where the Slurm executor has it start
  Snakemake, which starts Snakemake.
* While Slurm does not answer, a submission is tried again (``Hooks.is_away``), unless the job is
  in the queue in spite of it (``Hooks.queued``). Where it takes no more jobs of this user
  (``Hooks.full``), jobs wait here until some have ended, and so many are not exceeded again.
* Once it has an id, the id is kept (``Hooks.submitted``).
* Which jobs are over the hooks say, not the plugin of Slurm (``Hooks.ended``): that one compares
  sacct's ``CANCELLED by 0`` with ``CANCELLED``, and waits for ever.
* When a job has failed, the cause decides whether it is worth another try (``Hooks.failed``). Both
  are asked by the thread that looks after the jobs, and not under the lock of Snakemake's scheduler
  (``handle_job_error``).
"""

import asyncio
import re
import shlex
import sys
import threading
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
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
# How often a queue that took no more jobs is tried with as many as it last took.
FULL_S = 60.0
_TICK_S = 0.2
_NO_REASON = "no reason given"  # sbatch was killed


class Failed(NamedTuple):
    """What comes of a job that failed: whether it is tried again, and a line that says so.

    ``forgiven``: others wait for this one however it ends, and its output is there.
    """

    again: bool
    line: str
    forgiven: bool = False


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

    def full(self, said: str, queued: int) -> str:
        """Slurm's word for a limit of jobs that are submitted, where sbatch failed for it; else
        empty. ``queued``: jobs of this Snakemake in the queue."""

    def any_queued(self) -> bool:
        """Whether this user has any job in the queue."""

    def request(
        self, rule: str, wildcards: Mapping[str, str], attempt: int
    ) -> Mapping[str, int | str]:
        """What the job asks for as of now, in place of its resources."""

    def command(self, rule: str, wildcards: Mapping[str, str]) -> str:
        """What the job runs: a line for a shell."""

    def queued(self, rule: str, wildcards: Mapping[str, str], patient: bool) -> int | None:
        """Id of the job of this Snakemake that sbatch left without saying so; ``patient``: wait for
        Slurm's answer."""

    def submitted(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int, log: str
    ) -> None:
        """Keep the id of the job and the path of the log that Slurm writes."""

    def refused(self, rule: str, wildcards: Mapping[str, str], why: str) -> str:
        """Note a job that was not submitted; a line that says so."""

    def waiting(self) -> int:
        """How many jobs are known that have not been submitted yet."""

    def ended(self, job_ids: Collection[int]) -> Mapping[int, bool]:
        """Those of these jobs that are over: whether they left what they were to make."""

    def failed(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int, lost: bool
    ) -> Failed:
        """Whether another job may end better than this one, which has failed.

        ``lost``: Slurm has forgotten it, and given its id to another one.
        """

    def called_off(self, left: bool) -> None:
        """Note that all jobs are cancelled, or ``left`` to the next Snakemake."""


class AsOfNow:
    """A job with other resources, as the Slurm executor submits it."""

    def __init__(self, job: Any, resources: Mapping[str, int | str]) -> None:
        self.job = job
        self.resources = Resources({**dict(job.resources.items()), **resources})

    def __getattr__(self, name: str) -> Any:
        """What the job has under this name."""
        return getattr(self.job, name)


class Resources(dict[str, Any]):
    """Resources of a job, read as Snakemake's own are."""

    def __getattr__(self, name: str) -> Any:
        """A resource by its name."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


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
        # Jobs in the queue, by id.
        self._live: dict[int, SubmittedJobInfo] = {}
        # How many jobs of this Snakemake the queue has last taken, where it took no more, and when
        # that was seen.
        self._room: int | None = None
        self._full_since = 0.0
        # Those whose id another job has got: slurmctld crashed before it had saved its state.
        self._lost: list[SubmittedJobInfo] = []
        # When a job has last been over, and whether all that were then have left what they should.
        self._quiet_since = time.monotonic()
        self._ends_well = False
        # When the first job was submitted, and how many were since.
        self._submitting_since: float | None = None
        self._submitted = 0

    def run_job(self, job: Any) -> None:
        """Submit a job, after the hook; while Slurm does not answer, again."""
        if self.hooks is None:
            super().run_job(job)
            return
        if not self._await_room():
            return
        try:
            self.hooks.before(job.name, job.wildcards_dict, job.attempt)
            asked = self.hooks.request(job.name, job.wildcards_dict, job.attempt)
            # The Slurm executor would answer a full disk with a traceback.
            self._log_folder(job).mkdir(parents=True, exist_ok=True)
            if why := self._submit(AsOfNow(job, asked), self.hooks):
                self._refuse(job, why, self.hooks)
        except Exception as error:
            self._refuse(job, error, self.hooks)

    def _refuse(self, job: Any, why: Exception | str, hooks: Hooks) -> None:
        """Report a job that was not submitted."""
        if isinstance(why, OSError):
            why = f"{why.strerror or why}: {why.filename}"
        line = hooks.refused(job.name, job.wildcards_dict, str(why))
        self.report_job_error(SubmittedJobInfo(job), msg=line)

    def _note_full(self, limit: str) -> None:
        """Note that the queue takes no more jobs than there are; say so when it is less than was
        known."""
        queued = len(self._live)
        if self._room is None or queued < self._room:
            self.logger.warning(
                f"Slurm takes no more than {queued} job(s) of this call at a time ({limit}): the "
                "others wait here until one has ended"
            )
        self._room, self._full_since = queued, time.monotonic()

    def _await_room(self) -> bool:
        """Wait until the queue may take one more job; False if there will be none."""
        while (
            self._room is not None
            and len(self._live) >= self._room
            and time.monotonic() - self._full_since < FULL_S
        ):
            if self._ending.wait(_TICK_S):
                return False
        return not self._ending.is_set()

    def _submit(self, job: Any, hooks: Hooks) -> str:
        """Submit a job until Slurm takes it; why it does not, or nothing."""
        last, pause_s = time.monotonic() + PATIENCE_S, 1.0
        while not self._ending.is_set():
            super().run_job(job)
            complaint = self._complaints.pop(job, None)
            if complaint is None:
                break
            why = sbatch_said(complaint)
            # Ctrl-C ends sbatch too, maybe before this thread learns of it.
            if self._ending.is_set() or (why == _NO_REASON and self._ending.wait(_TICK_S)):
                self._take_up(job, hooks)
                break
            if limit := hooks.full(complaint, len(self._live)):
                if not (self._live or hooks.any_queued() or time.monotonic() < last):
                    return f"{why} ({limit})"
                self._note_full(limit)
                if not self._await_room():
                    break
                continue
            if not hooks.is_away(why) or time.monotonic() >= last:
                return why
            self.logger.warning(f"sbatch: {why}; submitting again")
            self._ending.wait(pause_s)
            pause_s = min(2 * pause_s, 15.0)
            if self._take_up(job, hooks):
                break
        return ""

    def _take_up(self, job: Any, hooks: Hooks) -> bool:
        """Register a job that sbatch has left in the queue without saying so; whether it has.

        Slurm's answer is waited for, unless jobs are called off.
        """
        ending = self._ending.is_set()
        try:
            job_id = hooks.queued(job.name, job.wildcards_dict, not ending)
        except Exception:
            if not ending:
                raise
            return False
        if job_id is not None:
            log = {"slurm_logfile": self._log_folder(job) / f"{job_id}.log"}
            self.report_job_submission(SubmittedJobInfo(job, str(job_id), log))
        return job_id is not None

    def _log_folder(self, job: Any) -> Any:
        return self.slurm_logdir / f"rule_{job.name}" / get_job_wildcards(job)

    def _report_job_error_threadsafe(self, job_info: SubmittedJobInfo, msg: str) -> None:
        """Keep what the Slurm executor has against a submission, for ``run_job`` to judge."""
        if self.hooks is None:
            super()._report_job_error_threadsafe(job_info, msg)
        else:
            self._complaints[job_info.job] = msg

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """The account that the job's site names, else Slurm's default one.

        The Slurm executor asks the accounting for each job whether there is such an account;
        sbatch does so too.
        """
        if self.hooks is None:
            yield from super().get_account_arg(job)
        else:
            account = job.resources.get("slurm_account")
            yield f" -A {shlex.quote(str(account))}" if account else ""

    def get_partition_arg(self, job: Any) -> str:
        """The partition that the job's site names, else Slurm's default one, likewise."""
        if self.hooks is None:
            return str(super().get_partition_arg(job))
        partition = job.resources.get("slurm_partition")
        return f" -p {shlex.quote(str(partition))}" if partition else ""

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
        job_id = job_info.external_jobid
        if isinstance(job_info.job, AsOfNow):
            job_info = SubmittedJobInfo(job_info.job.job, job_id, job_info.aux)
        job = job_info.job
        if self.hooks is not None and job_id is not None:
            if (lost := self._live.pop(int(job_id), None)) is not None:
                self._lost.append(lost)
            self._live[int(job_id)] = job_info
            log = str((job_info.aux or {}).get("slurm_logfile") or "")
            words = (job.name, job.wildcards_dict, job.attempt, int(job_id), log)
            try:
                self.hooks.submitted(*words)
            except OSError as error:  # the job is in the queue all the same
                self.logger.warning(f"Slurm job {job_id}: cannot be noted: {error}")
        if self._submitting_since is None:
            self._submitting_since = time.monotonic()
        self._submitted += 1
        super().report_job_submission(job_info, register_job=register_job)

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that are over, yield the others."""
        if self.hooks is None:
            async for info in super().check_active_jobs(active_jobs):
                yield info
            return
        least_s = self.workflow.executor_settings.init_seconds_before_status_checks
        if not active_jobs:  # nor may ``__post_init__`` have ended, which asks Slurm
            self._quiet_since = time.monotonic()
            self.next_seconds_between_status_checks = least_s
            return
        ended = await asyncio.to_thread(self._ended, active_jobs)
        quiet = not ended
        outcomes = set[bool]()
        for info in active_jobs:
            job_id = int(info.external_jobid or 0)
            if any(info is lost for lost in self._lost):
                self._lost = [lost for lost in self._lost if lost is not info]
                await asyncio.to_thread(self._report_failed, info, job_id, lost=True)
                outcomes.add(False)
                continue
            made = ended.get(job_id)
            if job_id in ended:
                self._live.pop(job_id, None)
            quiet = quiet and made is None
            if made is None:
                yield info
                continue
            outcomes.add(made)
            if made:
                self.report_job_success(info)
            else:
                await asyncio.to_thread(self._report_failed, info, job_id)
        if not quiet:
            self._quiet_since = time.monotonic()
        if outcomes:
            self._ends_well = False not in outcomes
        # Of a wait, a tenth at most is idle.
        now = time.monotonic()
        queued = len({info.external_jobid for info in active_jobs})
        idle_s = max(now - self._quiet_since, self._submitting_s(queued, now)) / 10
        self.next_seconds_between_status_checks = max(least_s, min(idle_s, LONGEST_S))

    def _submitting_s(self, queued: int, now: float) -> float:
        """For how long jobs will still be submitted, whether others end or not.

        The rate of submissions is what they wait for, so the end of a job lets nothing begin: the
        queue need not be looked at. 0 where it has no room for more, and while jobs fail: what
        fails may be tried again, or no more like it are to be submitted (``Hooks.failed``).
        """
        assert self.hooks is not None
        most = self.workflow.scheduler.global_resources.get("_nodes", sys.maxsize)
        if self._room is not None or queued >= most or not self._ends_well or not self._submitted:
            return 0.0
        since = now if self._submitting_since is None else self._submitting_since
        return self.hooks.waiting() * (now - since) / self._submitted

    def _ended(self, active_jobs: list[SubmittedJobInfo]) -> Mapping[int, bool]:
        assert self.hooks is not None
        try:
            return self.hooks.ended(sorted({int(info.external_jobid or 0) for info in active_jobs}))
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
        if verdict.forgiven:
            self.logger.error(verdict.line)
            self.report_job_success(info)
            return
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
        self._ending.set()
        if self.hooks is None:
            super().cancel_jobs(active_jobs)
            return
        # ``active_jobs`` is empty while they are looked at.
        self._call_off(self.hooks, known=())
        known = set(self._live)
        # What is being submitted comes into the queue only now.
        self._job_submission_executor.shutdown(wait=True, cancel_futures=True)
        self._call_off(self.hooks, known)
        if self.leaving.is_set() and self._live:
            self.logger.info(
                f"{len(self._live)} job(s) stay in Slurm's queue: `scalesweep run` waits for them, "
                "`scalesweep cancel` ends them"
            )

    def _call_off(self, hooks: Hooks, known: Collection[int]) -> None:
        """Cancel the jobs in the queue that are not ``known``, after the hook."""
        hooks.called_off(self.leaving.is_set())
        jobs = [info for job_id, info in self._live.copy().items() if job_id not in known]
        if jobs and not self.leaving.is_set():
            super().cancel_jobs(jobs)

    def shutdown(self) -> None:
        """End, without the submissions that have not begun."""
        self._job_submission_executor.shutdown(wait=True, cancel_futures=True)
        super().shutdown()


def sbatch_said(complaint: str) -> str:
    """The words of sbatch in what the Slurm executor reports of it, without the command."""
    match = re.search(r"The error message was '(.*?)'\.\n", complaint, re.DOTALL)
    lines = (match[1] if match else complaint).strip().splitlines()
    said = [re.sub(r"^sbatch: (?:error: )?", "", line.strip()) for line in lines if line.strip()]
    # The last line says what came of it; what precedes may be a warning of the site's.
    return said[-1] if said else _NO_REASON
