"""The executor of profiles/sge, profiles/pbs and profiles/lsf: any batch system, by three commands.

A profile says how a job is submitted, which jobs are in the queue, and how jobs are cancelled.
``scalesweep.smk.batch_queue`` calls them; all else is as in the executor for Slurm.
"""

from dataclasses import dataclass, field
from typing import Optional

from snakemake_executor_plugin_scalesweep import Executor as CampaignExecutor
from snakemake_executor_plugin_scalesweep import common_settings
from snakemake_interface_executor_plugins.settings import ExecutorSettingsBase

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

_SUBMITS = (
    "Submits the script that is appended, and prints the job's id. Filled in: {resources.NAME} for "
    "nodes, tasks, tasks_per_node, cpus_per_task, cpus_per_node, slots, mem_mb (of a node), gpus "
    "(of a node), runtime (minutes)"
)
_LISTS = "Prints the ids of the jobs in the queue, a line each"
_CANCELS = "Cancels the jobs whose ids are appended"


@dataclass
class ExecutorSettings(ExecutorSettingsBase):  # type: ignore[misc]  # untyped
    """The commands of the batch system. (Snakemake calls what it finds in Optional.)"""

    submit_cmd: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": _SUBMITS, "required": True}
    )
    queue_cmd: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": _LISTS, "required": True}
    )
    cancel_cmd: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": _CANCELS, "required": True}
    )


class Executor(CampaignExecutor):
    """Jobs of a campaign in a batch system."""

    def __post_init__(self) -> None:
        """Let the queue know the commands."""
        super().__post_init__()
        self.queue.commands = self.workflow.executor_settings
        self.queue.latency_s = self.workflow.execution_settings.latency_wait
