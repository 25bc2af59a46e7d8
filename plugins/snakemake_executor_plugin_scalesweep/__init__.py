"""The executor of profiles/slurm and of other batch systems: a campaign's runs are jobs.

A profile of another batch system than Slurm has three commands, which
``scalesweep.smk.batch_queue`` calls.

Snakemake imports every module of such a name, at top level, before it parses the command line, so
this package lies apart from ``scalesweep`` and imports nothing of it. The Snakefile sets what knows
the campaign, ``Executor.rules`` and ``Executor.queue``. What differs from other executors:

* A job runs the launcher and no Snakemake.
* Which jobs are over one ``squeue`` for all says.
* A run that has failed is an error only if another job may end better; else it is over, and what
  waits for it begins.
* SIGTERM leaves the jobs in the queue, Ctrl-C cancels them.
"""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Optional

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

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
    # Whether this Snakemake is to end at once, its jobs left to the next one.
    leaving: ClassVar[bool] = False

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
        # Ids of jobs in the queue: Snakemake has no list of them while they are looked at.
        self._live: set[int] = set()

    @classmethod
    def leave(cls, number: int, _frame: Any) -> NoReturn:
        """Answer SIGTERM: Snakemake would wait for the end of every job, for which a batch system
        or a user that is logging off gives it no time."""
        signal.signal(number, signal.SIG_IGN)
        cls.leaving = True
        sys.exit(128 + number)  # Snakemake's scheduler shuts down its executor

    def run_job(self, job: Any) -> None:
        """Submit a job, after what it reads is written; one that is refused has failed."""
        try:
            self.rules.before(job)
            job_id, why = self.queue.submit(job, self.rules.command(job))
        except OSError as error:
            job_id, why = None, f"{error.strerror or error}: {error.filename}"
        except Exception as error:
            job_id, why = None, str(error)
        if job_id is None:
            self._end(SubmittedJobInfo(job), *self.queue.refuse(job, why))
        else:
            self._live.add(job_id)
            self.report_job_submission(SubmittedJobInfo(job, str(job_id)))

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that are over, yield the others."""
        jobs = {int(info.external_jobid or 0): info for info in active_jobs}
        ended: dict[int, tuple[bool, str]] = {}
        if jobs:  # else ``__post_init__`` may not have ended
            try:
                ended = self.queue.ended({job_id: info.job for job_id, info in jobs.items()})
            except Exception as error:  # of a full disk, say: the jobs are looked at again
                self.logger.error(f"Slurm jobs: {error}")
        for job_id, info in jobs.items():
            if job_id in ended:
                self._live.discard(job_id)
                self._end(info, *ended[job_id])
            else:
                yield info

    def _end(self, info: SubmittedJobInfo, over: bool, line: str) -> None:
        """Say how a job failed, if it has, and tell the scheduler: it is ``over``, or an error,
        which the scheduler tries again as often as the rule allows."""
        if line:
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
        self.queue.call_off(sorted(self._live), self.leaving)
        if self.leaving and self._live:
            self.logger.info(f"{len(self._live)} job(s) stay in Slurm's queue: {self.queue.LEFT}")


def _explain_config_files() -> None:
    """Wrap Snakemake's reader of ``--configfile``: a file that it cannot read ends it with a line.

    Snakemake reads them before it looks at any Snakefile, so nothing there can say it better.
    """
    from snakemake.settings import types

    read = types.load_configfile

    def load(path: Any) -> Any:
        try:
            return read(path)
        except Exception as error:
            sys.exit(f"error: {_explain(Path(path), error)}")

    types.load_configfile = load


def _explain(path: Path, error: Exception) -> str:
    """What is wrong with a file: as for every YAML file of the workflow."""
    from scalesweep.config.yaml_loader import load_yaml
    from scalesweep.core.errors import UserError

    if not path.exists() and not path.suffix:
        return (
            f"--configfile {path}: no such file; --configfile takes all words that follow: name "
            f"what to make before it (snakemake {path} --configfile FILE)"
        )
    try:
        if not isinstance(load_yaml(path), dict):
            return f"{path}: the file holds no mapping (key: value)"
    except UserError as mistake:
        return str(mistake)
    return f"{path}: Snakemake cannot read it: {error}"


# Snakemake imports this module at every start.
_explain_config_files()
