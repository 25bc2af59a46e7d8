"""The executor of profiles/sge, profiles/pbs and profiles/lsf: any batch system, by three commands.

A profile says how a job is submitted, which jobs are in the queue, and how jobs are cancelled. A
job runs the launcher and no Snakemake. The Snakefile sets ``Executor.rules`` and
``Executor.hooks``, which know the campaign. What Slurm's executor does beyond that,
this one does not: jobs that an earlier call left in the queue are not found, and nothing is tried
again within a call.
"""

import asyncio
import re
import shlex
import subprocess
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Optional

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

common_settings = CommonSettings(
    non_local_exec=True, implies_no_shared_fs=False, job_deploy_sources=False,
    init_seconds_before_status_checks=1,
)  # fmt: skip
LOOK_S, PATIENCE_S = 2.0, 60.0  # between two looks at the queue; for one command


@dataclass
class ExecutorSettings(ExecutorSettingsBase):  # type: ignore[misc]  # untyped
    """The commands of the batch system."""

    submit_cmd: Optional[str] = field(  # noqa: UP045  # Snakemake calls what it finds in it
        default=None,
        metadata={
            "help": "Submits the script that is appended, and prints the job's id. Filled in: "
            "{resources.NAME} for nodes, tasks, tasks_per_node, cpus_per_task, slots (tasks times "
            "cpus_per_task), mem_mb (of a node), gpus (of a node), runtime (minutes)",
            "required": True,
        },
    )
    queue_cmd: Optional[str] = field(  # noqa: UP045  # Snakemake calls what it finds in it
        default=None,
        metadata={
            "help": "Prints the ids of the jobs in the queue, a line each",
            "required": True,
        },
    )
    cancel_cmd: Optional[str] = field(  # noqa: UP045  # Snakemake calls what it finds in it
        default=None, metadata={"help": "Cancels the jobs whose ids are appended", "required": True}
    )


class Executor(RemoteExecutor):  # type: ignore[misc]  # untyped
    """Jobs of a campaign in a batch system."""

    rules: ClassVar[Any] = None  # scalesweep.smk.job_rules.JobRules: what jobs run
    hooks: ClassVar[Any] = None  # scalesweep.smk.batch_hooks.BatchHooks: what becomes of them

    def __post_init__(self) -> None:
        """Refuse the Snakefile of another workflow."""
        if self.hooks is None:
            raise WorkflowError("this profile is for the Snakefile of scalesweep alone")
        self.next_seconds_between_status_checks = LOOK_S
        # When each job was first missed in the queue (s, monotonic).
        self._missed: dict[str, float] = {}
        self._complaint = ""

    def run_job(self, job: Any) -> None:
        """Submit a job, after what it reads is written."""
        info = SubmittedJobInfo(job)
        try:
            self.rules.before(job)
            script = self.get_jobscript(job)
            self.write_jobscript(job, script)
            command = job.format_wildcards(self.workflow.executor_settings.submit_cmd)
            said = _said(f"{command} {shlex.quote(script)}")
            number = re.search(r"\d+", said)
            why = "" if number else f"no id of a job in {said.strip()!r}, which {command} printed"
        except (OSError, subprocess.SubprocessError) as error:
            why, number = _why(error), None
        if number is None:
            self._end(info, *self.hooks.refuse(job, why))
        else:
            self.report_job_submission(SubmittedJobInfo(job, number[0]))

    def format_job_exec(self, job: Any) -> str:
        """The job's command, without a Snakemake around it."""
        folder = shlex.quote(self.workflow.workdir_init)
        return f"cd {folder} && {self.rules.command(job)}"

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that are over, yield the others: one look at the queue for all."""
        queued = await asyncio.to_thread(self._queued) if active_jobs else None
        for info in active_jobs:
            job_id = info.external_jobid
            if queued is None or job_id in queued:
                yield info
                continue
            # On a network file system what a job has left is seen late.
            since = time.monotonic() - self._missed.setdefault(job_id, time.monotonic())
            if self.rules.made(info.job).exists():
                self.report_job_success(info)
            elif since < self.workflow.execution_settings.latency_wait:
                yield info
            else:
                self._end(info, *self.hooks.lost(info.job, job_id))

    def _queued(self) -> set[str] | None:
        """Ids of the jobs in the queue; None if the batch system does not answer."""
        try:
            said = _said(str(self.workflow.executor_settings.queue_cmd))
        except (OSError, subprocess.SubprocessError) as error:
            why = f"the queue cannot be read: {_why(error)}; trying again"
            if why != self._complaint:
                self.logger.warning(why)
            self._complaint = why
            return None
        self._complaint = ""
        return set(re.findall(r"^\s*(\d+)", said, re.MULTILINE))

    def _end(self, info: SubmittedJobInfo, over: bool, line: str) -> None:
        """Say how a job ended; ``over``: what waits for it may begin."""
        self.logger.error(line)
        (self.report_job_success if over else self.report_job_error)(info)

    def print_job_error(self, job_info: SubmittedJobInfo, msg: str | None = None, **_: Any) -> None:
        """Nothing: ``_end`` has said it in a line."""

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """Cancel what is in the queue."""
        ids = " ".join(str(info.external_jobid) for info in active_jobs)
        try:
            if ids:
                _said(f"{self.workflow.executor_settings.cancel_cmd} {ids}")
        except (OSError, subprocess.SubprocessError) as error:
            self.logger.error(f"jobs {ids} may still be queued: {_why(error)}")


def _said(command: str) -> str:
    """What a command prints. Raises OSError or SubprocessError."""
    return subprocess.run(
        command, shell=True, check=True, text=True, timeout=PATIENCE_S, capture_output=True
    ).stdout  # fmt: skip


def _why(error: Exception) -> str:
    """An error in one line: the last one that the command has printed, if it printed any."""
    printed = str(getattr(error, "stderr", None) or "").strip().splitlines()
    return printed[-1] if printed else str(error)
