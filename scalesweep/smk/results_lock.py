"""What one Snakemake has to itself while it works: the runs of a results folder, or what is made of
them. Any number may look at the same folder meanwhile (`plan`, `-n`).
"""

import atexit
import logging
import time
from collections.abc import Collection
from io import FileIO
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.locks import REPORT, RUNS, claim
from scalesweep.core.orphans import end_orphans, marked

_log = logging.getLogger(__name__)

# Rules whose outputs are made of the runs.
_OF_RUNS = frozenset(
    {
        *("inventory", "summarise", "accounting", "tables"),
        *("experiment", "experiments_together", "page"),
    }
)
# A launcher whose Snakemake was killed ends its program within this time.
LEFTOVERS_S = 30.0
_POLL_S = 0.1


class Claims:
    """The claims of one Snakemake to a results folder; they end with it, however it ends."""

    def __init__(self, results: Path, runs: Path) -> None:
        self._results, self._runs = results, runs
        self._held: dict[str, FileIO] = {}
        self.begun = False
        atexit.register(self.end)

    def begin(self, rules: Collection[str], pending: bool, here: bool) -> None:
        """Claim what jobs of these ``rules`` will write, before the first of them starts.

        ``pending``: runs are to be made; ``here``: on this machine. Raises UserError if
        another Snakemake is at work in the folder, or something that a killed one has left.
        """
        if pending:
            self._held[RUNS] = claim(self._results)
            if here:
                self._await_leftovers()
        elif not _OF_RUNS.isdisjoint(rules):
            self._held[REPORT] = claim(self._results, REPORT)
        self.begun = True

    def report(self) -> None:
        """Claim what is made of the runs, when the first job of it starts; waits for another's end.

        Not before: `snakemake report` may be called while runs are made.
        """
        # Snakemake evaluates a rule's parameters once more while it plans.
        if self.begun and REPORT not in self._held:
            self._held[REPORT] = claim(self._results, REPORT, wait=True)

    def end(self) -> None:
        """Give everything back."""
        while self._held:
            self._held.popitem()[1].close()

    def _await_leftovers(self) -> None:
        """Wait for the end of what a Snakemake that was killed has left at work on this machine."""
        deadline = time.monotonic() + LEFTOVERS_S
        reported = False
        while True:
            end_orphans(self._runs)
            left = marked(self._runs)
            if not left:
                return
            launcher = left[0].launcher
            who = f"{left[0].run_id} is still being measured by process {launcher}"
            if time.monotonic() > deadline:
                raise UserError(
                    f"{self._runs}: {who}, started by an earlier snakemake; measurements never "
                    f"overlap: wait for it to finish, or run `kill {launcher}`"
                )
            if not reported:
                _log.info("%s, started by an earlier snakemake; waiting for its end", who)
                reported = True
            time.sleep(_POLL_S)
