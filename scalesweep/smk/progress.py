"""Progress of the pending runs while Snakemake works: n of N, elapsed, estimate."""

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from scalesweep.core.files import stamp_of
from scalesweep.core.formatting import duration
from scalesweep.core.record import FAILURE, RECORD
from scalesweep.planning.run_state import scan

POLL_S = 2.0
SHOWN_FAILURES = 10


class Progress(threading.Thread):
    """Watches the runs' folders (so it works for local and for cluster jobs) and prints a
    line whenever a run has finished. Ends with the process, or by ``finish``."""

    def __init__(self, runs_folder: Path, pending: Sequence[str]) -> None:
        """Watch ``pending`` runs in ``runs_folder`` from now on."""
        super().__init__(daemon=True, name="progress")
        self._folder = runs_folder
        self._open = list(pending)
        # Of runs that are to be measured again (--forcerun).
        self._before = {i: old for i in pending if (old := self._record(i)) is not None}
        self._total = len(pending)
        self._since = time.time()
        self._finished = 0
        self._failed: set[str] = set()
        self._over = threading.Event()

    def run(self) -> None:
        """Poll until the workflow ends."""
        cost = 0.0
        # With thousands of runs a look takes a while: spend at most 2 % of one core on it.
        while not self._over.wait(max(POLL_S, 50 * cost)):
            before = time.thread_time()
            if self._look():
                print(self._line(), file=sys.stderr, flush=True)
            cost = time.thread_time() - before

    def _look(self) -> bool:
        """Update the counts; True if anything has changed."""
        still_open = []
        failed = set(self._failed)
        for run_id in self._open:
            if self._record(run_id) != self._before.get(run_id):
                self._finished += 1
                failed.discard(run_id)
                continue
            still_open.append(run_id)
            if self._failed_since(run_id):
                failed.add(run_id)
        changed = len(still_open) != len(self._open) or failed != self._failed
        self._open, self._failed = still_open, failed
        return changed

    def _record(self, run_id: str) -> str | None:
        return stamp_of(f"{self._folder}/{run_id}/{RECORD}")

    def _failed_since(self, run_id: str) -> bool:
        try:
            path = f"{self._folder}/{run_id}/{FAILURE}"
            return os.stat(path).st_mtime >= self._since  # noqa: PTH116 (speed)
        except OSError:
            return False

    def _line(self) -> str:
        elapsed = time.time() - self._since
        finished = self._finished + len(self._failed)
        left = self._total - finished
        text = f"runs: {self._finished} of {self._total} done"
        if self._failed:
            text += f", {len(self._failed)} failed"
        text += f", elapsed {duration(elapsed)}"
        if left and finished:
            text += f", about {duration(elapsed / finished * left)} left"
        return text

    def finish(self) -> bool:
        """Stop watching; print the final count and what failed. True if any run has ended."""
        self._over.set()
        if self.is_alive():
            self.join()
        self._look()
        if not self._finished and not self._failed:
            return False
        print(self._line(), file=sys.stderr)
        states = scan(self._folder, sorted(self._failed)[:SHOWN_FAILURES])
        for run_id, state in states.items():
            print(f"failed: {run_id}: {state.cause}: {state.detail}", file=sys.stderr)
        if len(self._failed) > SHOWN_FAILURES:
            print(f"failed: {len(self._failed) - SHOWN_FAILURES} more", file=sys.stderr)
        if self._failed:
            print("`snakemake` runs what failed again, and nothing else", file=sys.stderr)
        return True
