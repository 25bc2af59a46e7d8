"""Progress of the pending runs while Snakemake works, by its own events: n of N, elapsed, left.

The terminal gets a line for each job, where Snakemake prints ten; its log file has them all.
"""

import contextlib
import logging
import re
import sys
import time
from pathlib import Path
from typing import Any

from snakemake.logging import get_event, logger
from snakemake_interface_logger_plugins.common import LogEvent

from scalesweep.compute.job_spec import LAUNCHER_LOG
from scalesweep.core.causes import Cause
from scalesweep.core.files import natural_order
from scalesweep.core.formatting import counted, duration, listed
from scalesweep.core.record import FAILURE, RECORD
from scalesweep.core.visible import visible
from scalesweep.jobs.failure_groups import Failure, failure_lines
from scalesweep.slurm.commands import LEFT_TO_RUN
from scalesweep.smk.context import SnakemakeContext
from scalesweep.state.run_state import scan

SAID_S = 2.0  # between two lines on jobs of Slurm
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


class Progress:
    """The pending runs of a campaign: those that are open, done and failed."""

    def __init__(self, context: SnakemakeContext) -> None:
        """Count from now on."""
        self._context = context
        self._folder = Path(context.runs_folder)
        self._done: set[str] = set()
        self._failed: set[str] = set()
        self._pending = frozenset(context.pending)
        self.since = time.time()
        self._jobs: dict[int, str] = {}  # of Snakemake
        self._said = 0.0

    def begins(self, job: int, run_id: str) -> str:
        """Note the run of a job; how many have failed and the time that is left, for the line of
        the run; empty at first."""
        self._jobs[job] = run_id
        return self._count_failed() + self._left()

    def ends(self, job: int) -> str:
        """Note the end of a job; a line on jobs of Slurm, or nothing."""
        if (run_id := self._jobs.get(job)) is None:
            return ""
        self._look_at(run_id)
        now = time.monotonic()
        if self._context.submission is None or now - self._said < SAID_S:
            return ""
        self._said = now
        return f"{self._line()}{self._context.submission.in_queue}"

    def _look_at(self, run_id: str) -> None:
        if run_id in self._done or run_id not in self._pending:
            return
        submission = self._context.submission
        if (self._folder / run_id / RECORD).exists():
            self._done.add(run_id)
            self._failed.discard(run_id)
        elif run_id in submission.given_up if submission else self._is_new(run_id, FAILURE):
            self._failed.add(run_id)  # and is not about to be tried again

    def _is_new(self, run_id: str, name: str) -> bool:
        """Whether a file of a run was written in this call."""
        with contextlib.suppress(OSError):
            return (self._folder / run_id / name).stat().st_mtime >= self.since
        return False

    def _line(self) -> str:
        done = f"runs: {len(self._done)} of {len(self._pending)} done{self._count_failed()}"
        return f"{done}, elapsed {duration(time.time() - self.since)}{self._left()}"

    def _count_failed(self) -> str:
        return f", {len(self._failed)} failed" if self._failed else ""

    def _left(self) -> str:
        ended, elapsed = len(self._done) + len(self._failed), time.time() - self.since
        left = len(self._pending) - ended
        return f", about {duration(elapsed / ended * left)} left" if left > 0 and ended else ""

    def finish(self) -> bool:
        """Print the final count and what failed. True if any run has ended."""
        submission = self._context.submission
        begun = [i for i in self._context.pending if i in self._context.to_run]
        for run_id in begun:
            self._look_at(run_id)
            lost = submission and not submission.ending and run_id in submission.in_hand
            if submission and lost and run_id not in self._done:
                # Snakemake looked for the output of its job in vain.
                submission.give_up(run_id, Cause.KILLED, "its job completed, but left no record")
                self._failed.add(run_id)
        self._tell_cut_off([i for i in begun if i not in self._done | self._failed])
        if not self._done and not self._failed:
            return False
        print(self._line(), file=sys.stderr)
        for line in failure_lines(self._failures()):
            print(visible(f"failed: {line}"), file=sys.stderr)
        if self._failed:
            first = min(self._failed, key=self._context.positions.__getitem__)
            attempts = sorted((self._folder / first).glob("attempt-*"), key=natural_order)
            where = f"; output of one: {attempts[-1]}" if attempts else ""
            again = "fix the cause; the same call then runs only what failed"
            print(f"{again}{where}", file=sys.stderr)
        return True

    def _tell_cut_off(self, run_ids: list[str]) -> None:
        """Say which of these runs had begun, and have not ended."""
        submission = self._context.submission
        if submission is None:
            cut = [run_id for run_id in run_ids if self._is_new(run_id, LAUNCHER_LOG)]
            how = f"ended without a result: still to be run: {listed(cut)}"
        else:
            cut = [i for i in run_ids if i in submission.in_hand and submission.ending]
            how = "cancelled with this call: still to be run"
        if cut:
            print(f"{counted(len(cut), 'run')} {how}", file=sys.stderr)
        if cut and submission and submission.live:
            jobs = counted(len(submission.live), "job")
            print(f"{jobs} of an earlier call may still be queued: {LEFT_TO_RUN}", file=sys.stderr)

    def left_failed(self) -> str:
        """What a call ends with in which all went on although runs failed; empty if none has."""
        return f"{counted(len(self._failed), 'run')} failed" if self._failed else ""

    def _failures(self) -> list[Failure]:
        """The runs that failed, with what varies in their experiment, in the campaign's order."""
        context = self._context
        known = context.submission.given_up if context.submission else {}
        failures = []
        ordered = sorted(self._failed, key=context.positions.__getitem__)
        for run_id, state in scan(self._folder, ordered).items():
            # What is on disk says more, but there is nothing where the disk was full.
            cause, detail = known.get(run_id, ("", ""))
            if state.cause and cause != Cause.NOT_SUBMITTED:
                cause, detail = state.cause, state.detail
            name, varying = context.runs[run_id][0].name, context.varying(run_id)
            failures.append(Failure(run_id, cause, detail, name, varying))
        return failures


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
