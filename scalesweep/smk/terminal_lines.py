"""A line on the terminal for each job, where Snakemake prints ten; its log file has them all."""

import logging
import re
from collections.abc import Callable
from typing import Any

from snakemake.logging import get_event, logger
from snakemake_interface_logger_plugins.common import LogEvent

from scalesweep.core.visible import visible

_STREAM = "DefaultStreamHandler"  # the name that Snakemake gives to its handler of the terminal
_DROPPED = (LogEvent.JOB_STARTED, LogEvent.JOB_FINISHED, LogEvent.PROGRESS, LogEvent.RUN_INFO)
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


class _OneLine(logging.Filter):
    def __init__(self, handler: logging.Handler, so_far: Callable[[], str]) -> None:
        super().__init__()
        self._handler = handler
        self._so_far = so_far

    def filter(self, record: logging.LogRecord) -> bool:
        event, rule = get_event(record), getattr(record, "rule_name", "")
        if event == LogEvent.JOB_INFO:
            # ``all`` has no message: its input is a file of each run.
            if message := getattr(record, "rule_msg", None):
                self._print(record, message + (self._so_far() if rule == "run" else ""))
            return False
        if event == LogEvent.JOB_ERROR:
            if rule != "run":  # of which the launcher, or the executor, has said why
                log = ", ".join(map(str, getattr(record, "log", None) or ()))
                self._print(record, f"rule {rule} failed" + (f", log: {log}" if log else ""))
            return False
        if event == LogEvent.ERROR and _COMMAND_FAILED.match(str(record.msg)):
            return False
        return event not in _DROPPED and record.msg not in _OF_ITS_WORK

    def _print(self, record: logging.LogRecord, line: str) -> None:
        self._handler.handle(
            logging.LogRecord(
                record.name,
                record.levelno,
                record.pathname,
                record.lineno,
                visible(line),
                None,
                None,
            )
        )


def one_line_a_job(workflow: Any, so_far: Callable[[], str]) -> None:
    """Have Snakemake print the message of a job when it starts, and no more of it until it fails.

    That of a run is followed by what ``so_far`` returns.
    A dry run, --verbose, a log plugin, and a workflow that uses this one as a module keep what
    Snakemake prints.
    """
    settings = workflow.output_settings
    if settings.dryrun or settings.verbose or not workflow.modifier.is_main_snakefile():
        return
    for handler in logger.handlers:
        if handler.name == _STREAM:
            handler.addFilter(_OneLine(handler, so_far))
