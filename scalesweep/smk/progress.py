"""Progress of the pending runs while Snakemake works: n of N, elapsed, estimate."""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from scalesweep.compute.job_spec import LAUNCHER_LOG
from scalesweep.core.causes import Cause
from scalesweep.core.files import natural_order
from scalesweep.core.formatting import counted, duration, listed, number
from scalesweep.core.record import FAILURE, RECORD
from scalesweep.core.visible import visible
from scalesweep.jobs.failure_groups import Failure, failure_lines
from scalesweep.slurm.earlier import LEFT_TO_RUN
from scalesweep.smk.context import SnakemakeContext
from scalesweep.state.run_state import scan

POLL_S = 2.0


def _rate(record: Path) -> str:
    """The first rate that a run states, ``301 images/s``; empty if it states none."""
    try:
        metrics = json.loads(record.read_bytes())["metrics"].values()
    except (OSError, ValueError, LookupError):
        return ""
    rates = [metric for metric in metrics if str(metric["unit"]).endswith("/s")]
    return f"{number(rates[0]['value'])} {rates[0]['unit']}" if rates else ""


class Progress:
    """Watches the runs' folders, so it works for local and for cluster jobs; of these it prints a
    line whenever some have finished. Ends with the process, or by ``finish``."""

    def __init__(self, context: SnakemakeContext) -> None:
        """Watch the pending runs of a campaign from now on."""
        # It has a thread and is none: attributes of threads are not to be shadowed (``_stop``).
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="progress")
        self._context = context
        self._folder = Path(context.runs_folder)
        self._open = list(context.pending)
        self._total = len(self._open)
        self._since = time.time()
        self._finished = 0
        self._failed: set[str] = set()
        self._rate = ""
        self._over = threading.Event()

    def start(self) -> None:
        """Begin to watch."""
        self._watcher.start()

    def _watch(self) -> None:
        """Poll until the workflow ends."""
        cost = 0.0
        # With thousands of runs a look takes a while: spend at most 2 % of one core on it.
        while not self._over.wait(max(POLL_S, 50 * cost)):
            before = time.thread_time()
            if self._look() and self._context.submission:
                print(visible(self._line()), file=sys.stderr, flush=True)
            cost = time.thread_time() - before

    def _look(self) -> bool:
        """Update the counts; True if anything has changed."""
        still_open = []
        failed = set(self._failed)
        for run_id in self._open:
            if (self._folder / run_id / RECORD).exists():
                self._finished += 1
                self._rate = _rate(self._folder / run_id / RECORD)
                failed.discard(run_id)
                continue
            still_open.append(run_id)
            if self._failed_since(run_id):
                failed.add(run_id)
        changed = len(still_open) != len(self._open) or failed != self._failed
        self._open, self._failed = still_open, failed
        return changed

    def _failed_since(self, run_id: str) -> bool:
        """Whether a run has failed, and is not about to be tried again."""
        if submission := self._context.submission:
            return run_id in submission.given_up
        try:
            path = f"{self._folder}/{run_id}/{FAILURE}"
            return os.stat(path).st_mtime >= self._since  # noqa: PTH116 (speed)
        except OSError:
            return False

    def _line(self) -> str:
        elapsed = time.time() - self._since
        text = f"runs: {self._finished} of {self._total} done"
        if self._failed:
            text += f", {len(self._failed)} failed"
        if self._context.submission and not self._over.is_set():
            text += self._context.submission.in_queue
        return f"{text}, elapsed {duration(elapsed)}{self._left(elapsed)}"

    def _left(self, elapsed: float) -> str:
        finished = self._finished + len(self._failed)
        left = self._total - finished
        if not (left > 0 and finished):
            return ""
        return f", about {duration(elapsed / finished * left)} left"

    def so_far(self) -> str:
        """What the last run reached, how many have failed and the time that is left, for the line
        of a run that starts here; empty at first."""
        failed = f", {len(self._failed)} failed" if self._failed else ""
        last = f", last: {self._rate}" if self._rate else ""
        return last + failed + self._left(time.time() - self._since)

    def finish(self) -> bool:
        """Stop watching; print the final count and what failed. True if any run has ended."""
        self._over.set()
        if self._watcher.is_alive():
            self._watcher.join()
        self._look()
        if submission := self._context.submission:
            lost = [i for i in self._open if i in submission.in_hand]
            for run_id in lost:
                # Snakemake looked for the output of its job in vain.
                submission.give_up(run_id, Cause.KILLED, "its job completed, but left no record")
        self._look()
        called_off = submission.called_off & set(self._open) if submission else set()
        if called_off:
            runs = counted(len(called_off), "run")
            print(f"{runs} cancelled with this call: still to be run", file=sys.stderr)
            if submission and submission.live:
                jobs = counted(len(submission.live), "job")
                print(
                    f"{jobs} of an earlier call may still be queued: {LEFT_TO_RUN}", file=sys.stderr
                )
        if cut_off := self._cut_off():
            runs, names = counted(len(cut_off), "run"), listed(cut_off)
            ended = "ended without a result, as the launcher was killed or interrupted"
            print(f"{runs} {ended}: still to be run: {names}", file=sys.stderr)
        if not self._finished and not self._failed:
            return False
        print(self._line(), file=sys.stderr)
        for line in failure_lines(self._failures()):
            print(visible(f"failed: {line}"), file=sys.stderr)
        if self._failed:
            print(self._next(), file=sys.stderr)
        return True

    def _cut_off(self) -> list[str]:
        """The runs that this machine has begun in this call, and of which nothing tells an end."""
        if self._context.submission:
            return []
        left = (run_id for run_id in self._open if run_id not in self._failed)
        return [run_id for run_id in left if self._was_begun(run_id)]

    def _was_begun(self, run_id: str) -> bool:
        try:
            return (self._folder / run_id / LAUNCHER_LOG).stat().st_mtime >= self._since
        except OSError:
            return False

    def left_failed(self) -> str:
        """What a call ends with in which all went on although runs failed; empty if none has."""
        return f"{counted(len(self._failed), 'run')} failed" if self._failed else ""

    def _next(self) -> str:
        """What to do about failures, with the output of one of them."""
        first = min(self._failed, key=self._context.positions.__getitem__)
        attempts = sorted((self._folder / first).glob("attempt-*"), key=natural_order)
        where = f"; output of one: {attempts[-1]}" if attempts else ""
        return f"mend the cause, then `snakemake` runs what failed again, nothing else{where}"

    def _failures(self) -> list[Failure]:
        """The runs that failed, with what varies in their experiment, in the campaign's order."""
        context = self._context
        known: Mapping[str, tuple[str, str]] = (
            context.submission.given_up if context.submission else {}
        )
        failures = []
        for run_id, state in scan(self._folder, self._failed).items():
            experiment, run = context.runs[run_id]
            # What is on disk says more, but there is nothing where the disk was full.
            cause, detail = known.get(run_id, ("", ""))
            if state.cause and cause != Cause.NOT_SUBMITTED:
                cause, detail = state.cause, state.detail
            point = experiment.benchmark.scaled(run.point)
            axes = (*experiment.axes, *experiment.linked)
            varying = {axis: point[axis] for axis in axes if axis in point}
            failures.append(Failure(run_id, cause, detail, experiment.name, varying))
        order = context.campaign.positions()
        return sorted(failures, key=lambda failure: order.get(failure.run_id, 0))
