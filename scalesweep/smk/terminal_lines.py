"""A line on the terminal for each job, where Snakemake prints ten; its log file has them all."""

import logging
import re
from typing import Any

from snakemake.logging import get_event, logger
from snakemake_interface_logger_plugins.common import LogEvent

from scalesweep.core.visible import visible
from scalesweep.smk.progress import Progress

_STREAM = "DefaultStreamHandler"  # the name that Snakemake gives to its handler of the terminal
_DROPPED = (LogEvent.JOB_STARTED, LogEvent.PROGRESS, LogEvent.RUN_INFO)
# What Snakemake prints besides of a local job that failed: the command.
_COMMAND_FAILED = re.compile(r"RuleException:\nCalledProcessError in file \".*/rules/\w+\.smk\"")
# What it says of its own work, which is about none of the jobs.
_OF_ITS_WORK = (
    "Select jobs to execute...",
    "Job rate limit reached, waiting for free slots.",
    "DAG of jobs will be updated after completion.",
    "Updating checkpoint dependencies.",
    "Building DAG of jobs...",
    "Assuming unrestricted shared filesystem usage.",
    "Rules claiming more threads will be scaled down.",
)
# And of what `snakemake report` has made since it began.
_MEANWHILE = "Warning: the following output files of rule"


class _OneLine(logging.Filter):
    def __init__(self, handler: logging.Handler, progress: Progress) -> None:
        super().__init__()
        self._handler, self._progress = handler, progress

    def filter(self, record: logging.LogRecord) -> bool:
        event, rule = get_event(record), getattr(record, "rule_name", "")
        line = ""
        if event == LogEvent.JOB_INFO:
            # ``all`` has no message: its input is a file of each run.
            if line := getattr(record, "rule_msg", None) or "":
                run_id = record.__dict__["wildcards"]["run_id"] if rule == "run" else ""
                line += self._progress.begins(record.__dict__["jobid"], run_id) if run_id else ""
        elif event == LogEvent.JOB_FINISHED:
            line = self._progress.ends(record.__dict__["job_id"])
        elif event == LogEvent.JOB_ERROR:
            if rule != "run":  # of which the launcher, or the executor, has said why
                log = ", ".join(map(str, getattr(record, "log", None) or ()))
                line = f"rule {rule} failed" + (f", log: {log}" if log else "")
        elif event == LogEvent.ERROR and _COMMAND_FAILED.match(str(record.msg)):
            return False
        else:
            said = str(record.msg)
            known = said in _OF_ITS_WORK or said.startswith(_MEANWHILE)
            return event not in _DROPPED and not known
        if line:
            place = (record.name, record.levelno, record.pathname, record.lineno)
            self._handler.handle(logging.LogRecord(*place, visible(line), None, None))
        return False


def one_line_a_job(workflow: Any, progress: Progress) -> None:
    """Have Snakemake print the message of a job when it starts, and no more of it until it fails.

    ``progress`` is told of jobs that begin and end, and adds to the lines of runs. A dry run,
    --verbose, a log plugin, and a workflow that uses this one as a module keep what Snakemake
    prints.
    """
    settings = workflow.output_settings
    if settings.dryrun or settings.verbose or not workflow.modifier.is_main_snakefile():
        return
    for handler in logger.handlers:
        if handler.name == _STREAM:
            handler.addFilter(_OneLine(handler, progress))
