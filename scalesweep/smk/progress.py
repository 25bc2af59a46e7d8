"""Progress of the pending runs while Snakemake works: n of N, elapsed, estimate."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from scalesweep.core.files import stamp_of
from scalesweep.core.formatting import counted, duration
from scalesweep.core.record import FAILURE, RECORD, read_failure
from scalesweep.planning.failure_groups import Failure, failure_lines, kind_of
from scalesweep.planning.run_state import scan
from scalesweep.slurm.failure import NOT_SUBMITTED
from scalesweep.smk.context import SnakemakeContext

POLL_S, QUICK_POLL_S = 2.0, 0.5


class Progress(threading.Thread):
    """Watches the runs' folders, so it works for local and for cluster jobs; of these it prints a
    line whenever some have finished. Ends with the process, or by ``finish``."""

    def __init__(self, context: SnakemakeContext, stop: Callable[[], None]) -> None:
        """Watch the awaited runs of a campaign from now on.

        ``stop`` starts no more runs: called after ``stop_after`` failures of one kind in a row.
        """
        super().__init__(daemon=True, name="progress")
        self._context = context
        self._stop = stop
        self._most = context.campaign.stop_after
        # Kind of the last failures in a row, and their number.
        self._streak: tuple[tuple[str, str] | None, int] = (None, 0)
        self._folder = Path(context.runs_folder)
        self._open = list(context.awaited)
        # Of runs that are to be measured again (--forcerun).
        self._before = {i: old for i in self._open if (old := self._record(i)) is not None}
        self._total = len(self._open)
        self._since = time.time()
        self._finished = 0
        self._failed: set[str] = set()
        self._over = threading.Event()

    def run(self) -> None:
        """Poll until the workflow ends."""
        cost = 0.0
        # With thousands of runs a look takes a while: spend at most 2 % of one core on it.
        poll_s = POLL_S if self._most is None else QUICK_POLL_S
        while not self._over.wait(max(poll_s, 50 * cost)):
            before = time.thread_time()
            if self._look() and self._context.submission:
                print(self._line(), file=sys.stderr, flush=True)
            cost = time.thread_time() - before

    def _look(self) -> bool:
        """Update the counts; True if anything has changed."""
        # A look has asked for these since.
        self._open += self._context.awaited[self._total :]
        self._total = len(self._context.awaited)
        still_open = []
        failed = set(self._failed)
        done = []
        for run_id in self._open:
            if self._record(run_id) != self._before.get(run_id):
                self._finished += 1
                failed.discard(run_id)
                done.append(run_id)
                continue
            still_open.append(run_id)
            if self._failed_since(run_id):
                failed.add(run_id)
        if self._most is not None:
            self._count(done, failed - self._failed)
        changed = len(still_open) != len(self._open) or failed != self._failed
        self._open, self._failed = still_open, failed
        return changed

    def _record(self, run_id: str) -> str | None:
        return stamp_of(f"{self._folder}/{run_id}/{RECORD}")

    def _count(self, done: Iterable[str], failed: Iterable[str]) -> None:
        """Count failures of one kind in a row, in the order in which runs ended; stop at enough."""
        ends = [(self._time(run_id, RECORD), run_id, True) for run_id in done]
        ends += [(self._time(run_id, FAILURE), run_id, False) for run_id in failed]
        for _, run_id, is_done in sorted(ends):
            before, number = self._streak
            failure = {} if is_done else read_failure(self._folder / run_id) or {}
            said = (str(failure.get("cause", "")), str(failure.get("detail", "")))
            kind = None if is_done else kind_of(run_id, *said)
            self._streak = kind, number + 1 if kind == before else 1
            if kind is not None and self._streak[1] == self._most:
                print(
                    f"error: {self._most} identical failures in a row (stop_after): no more runs "
                    f"are started: {': '.join(filter(None, said))}",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
                self._most = None  # once
                self._stop()

    def _time(self, run_id: str, name: str) -> float:
        try:
            return (self._folder / run_id / name).stat().st_mtime
        except OSError:
            return time.time()

    def _failed_since(self, run_id: str) -> bool:
        """Whether a run has failed, and is not about to be tried again."""
        if submission := self._context.submission:
            if run_id in submission.given_up:
                return True
            if run_id in submission.in_hand:
                return False
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
        return f"{text}, elapsed {duration(elapsed)}{self._left(elapsed)}"

    def _left(self, elapsed: float) -> str:
        finished = self._finished + len(self._failed)
        left = self._total - finished
        return f", about {duration(elapsed / finished * left)} left" if left and finished else ""

    def so_far(self) -> str:
        """How many of the runs have failed and the time that is left, for the line of a run that
        starts here; empty at first."""
        failed = f", {len(self._failed)} failed" if self._failed else ""
        return failed + self._left(time.time() - self._since)

    def finish(self) -> bool:
        """Stop watching; print the final count and what failed. True if any run has ended."""
        self._over.set()
        if self.is_alive():
            self.join()
        self._look()
        if submission := self._context.submission:
            for run_id in [run_id for run_id in self._open if run_id in submission.in_hand]:
                # Snakemake looked for the output of its job in vain.
                submission.give_up(run_id, "KILLED", "its job completed, but left no record")
        self._look()
        if not self._finished and not self._failed:
            return False
        print(self._line(), file=sys.stderr)
        for line in failure_lines(self._failures()):
            print(f"failed: {line}", file=sys.stderr)
        if self._failed:
            print("`snakemake` runs what failed again, and nothing else", file=sys.stderr)
        return True

    def left_failed(self) -> str:
        """What a call ends with in which all went on although runs failed; empty if none has."""
        return f"{counted(len(self._failed), 'run')} failed" if self._failed else ""

    def _failures(self) -> list[Failure]:
        """The runs that failed, with what varies in their experiment, in the campaign's order."""
        context = self._context
        known: Mapping[str, tuple[str, str]] = (
            context.submission.given_up if context.submission else {}
        )
        found = []
        for run_id, state in scan(self._folder, self._failed).items():
            experiment, run = context.runs[run_id]
            # What is on disk says more, but there is nothing where the disk was full.
            cause, detail = known.get(run_id, ("", ""))
            if state.cause and cause != NOT_SUBMITTED:
                cause, detail = state.cause, state.detail
            point = experiment.benchmark.scaled(run.point)
            axes = (*experiment.axes, *experiment.linked)
            varying = {axis: point[axis] for axis in axes if axis in point}
            found.append(Failure(run_id, cause, detail, experiment.name, varying))
        order = context.campaign.positions()
        return sorted(found, key=lambda failure: order.get(failure.run_id, 0))
