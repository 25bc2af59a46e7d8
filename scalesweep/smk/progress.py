"""Progress of the pending runs while Snakemake works, by its own events: n of N, elapsed, left."""

import json
import sys
import time
from pathlib import Path

from scalesweep.compute.job_spec import LAUNCHER_LOG
from scalesweep.core.causes import Cause
from scalesweep.core.files import natural_order
from scalesweep.core.formatting import counted, duration, listed, number
from scalesweep.core.record import FAILURE, RECORD
from scalesweep.core.visible import visible
from scalesweep.jobs.failure_groups import Failure, failure_lines
from scalesweep.slurm.commands import LEFT_TO_RUN
from scalesweep.smk.context import SnakemakeContext
from scalesweep.state.run_state import scan

SAID_S = 2.0  # between two lines on jobs of Slurm


def _rate(record: Path) -> str:
    """The first rate that a run states, ``301 images/s``; empty if it states none."""
    try:
        metrics = json.loads(record.read_bytes())["metrics"].values()
    except (OSError, ValueError, LookupError):
        return ""
    rates = [metric for metric in metrics if str(metric["unit"]).endswith("/s")]
    return f"{number(rates[0]['value'])} {rates[0]['unit']}" if rates else ""


class Progress:
    """The pending runs of a campaign: those that are open, done and failed."""

    def __init__(self, context: SnakemakeContext) -> None:
        """Count from now on."""
        self._context = context
        self._folder = Path(context.runs_folder)
        self._done: set[str] = set()
        self._pending = frozenset(context.pending)
        self._since = time.time()
        self._failed: set[str] = set()
        self._rate = ""
        self._jobs: dict[int, str] = {}  # of Snakemake
        self._said = 0.0

    def begins(self, job: int, run_id: str) -> str:
        """Note the run of a job; what the last run reached, how many have failed and the time that
        is left, for the line of the run; empty at first."""
        self._jobs[job] = run_id
        failed = f", {len(self._failed)} failed" if self._failed else ""
        last = f", last: {self._rate}" if self._rate else ""
        return last + failed + self._left(time.time() - self._since)

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
        record = self._folder / run_id / RECORD
        if run_id in self._done or run_id not in self._pending:
            return
        if record.exists():
            self._done.add(run_id)
            self._failed.discard(run_id)
            self._rate = _rate(record)
        elif submission := self._context.submission:
            if run_id in submission.given_up:  # and not about to be tried again
                self._failed.add(run_id)
        elif self._is_new(self._folder / run_id / FAILURE):
            self._failed.add(run_id)

    def _open(self) -> list[str]:
        """The runs that Snakemake makes and that have no record yet."""
        made = self._context.to_run - self._done
        return [run_id for run_id in self._context.pending if run_id in made]

    def _is_new(self, path: Path) -> bool:
        """Whether a file was written in this call."""
        try:
            return path.stat().st_mtime >= self._since
        except OSError:
            return False

    def _line(self) -> str:
        elapsed = time.time() - self._since
        failed = f", {len(self._failed)} failed" if self._failed else ""
        done = f"runs: {len(self._done)} of {len(self._pending)} done{failed}"
        return f"{done}, elapsed {duration(elapsed)}{self._left(elapsed)}"

    def _left(self, elapsed: float) -> str:
        ended = len(self._done) + len(self._failed)
        left = len(self._pending) - ended
        return f", about {duration(elapsed / ended * left)} left" if left > 0 and ended else ""

    def finish(self) -> bool:
        """Print the final count and what failed. True if any run has ended."""
        submission = self._context.submission
        for run_id in self._open():
            self._look_at(run_id)
            lost = submission and not submission.ending and run_id in submission.in_hand
            if submission and lost and run_id not in self._done:
                # Snakemake looked for the output of its job in vain.
                submission.give_up(run_id, Cause.KILLED, "its job completed, but left no record")
                self._failed.add(run_id)
        for line in self._still_to_be_run():
            print(line, file=sys.stderr)
        if not self._done and not self._failed:
            return False
        print(self._line(), file=sys.stderr)
        for line in failure_lines(self._failures()):
            print(visible(f"failed: {line}"), file=sys.stderr)
        if self._failed:
            first = min(self._failed, key=self._context.positions.__getitem__)
            attempts = sorted((self._folder / first).glob("attempt-*"), key=natural_order)
            where = f"; output of one: {attempts[-1]}" if attempts else ""
            again = "mend the cause, then `snakemake` runs what failed again, nothing else"
            print(f"{again}{where}", file=sys.stderr)
        return True

    def _still_to_be_run(self) -> list[str]:
        """Lines on runs that have begun and not ended."""
        submission = self._context.submission
        if submission is None:
            begun = [i for i in self._open() if self._is_new(self._folder / i / LAUNCHER_LOG)]
            cut_off = [run_id for run_id in begun if run_id not in self._failed]
            ended = "ended without a result, as the launcher was killed or interrupted"
            runs = counted(len(cut_off), "run")
            return [f"{runs} {ended}: still to be run: {listed(cut_off)}"] if cut_off else []
        cancelled = submission.in_hand.intersection(self._open()) if submission.ending else ()
        if not cancelled:
            return []
        lines = [f"{counted(len(cancelled), 'run')} cancelled with this call: still to be run"]
        if submission.live:
            jobs = counted(len(submission.live), "job")
            lines.append(f"{jobs} of an earlier call may still be queued: {LEFT_TO_RUN}")
        return lines

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
            experiment, run = context.runs[run_id]
            # What is on disk says more, but there is nothing where the disk was full.
            cause, detail = known.get(run_id, ("", ""))
            if state.cause and cause != Cause.NOT_SUBMITTED:
                cause, detail = state.cause, state.detail
            point = experiment.benchmark.scaled(run.point)
            axes = (*experiment.axes, *experiment.linked)
            varying = {axis: point[axis] for axis in axes if axis in point}
            failures.append(Failure(run_id, cause, detail, experiment.name, varying))
        return failures
