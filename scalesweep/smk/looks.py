"""Blocks of runs within one call of Snakemake: after each, a look says what is still to be run.

Snakemake's DAG grows at a checkpoint, the rule ``look``. Look 0 waits for the pending runs of
points with ``repeats: {min, max, until}``, of the smallest counts of experiments with ``stop``, and
of a budget that is spent in rounds; each further one for the block that the one before it has asked
for, until none asks for more. A run that fails is no reason to stop looking at the others: it
counts as over (``Looks.about``), and the call ends with an exit code.
"""

import atexit
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from scalesweep.adaptive.policy import RunPlan, plan_runs
from scalesweep.config.campaign import Campaign

STATES_FOLDER = ".state"  # in the results folder: what looks leave

OUTPUT = "look-"  # begins the names of what the looks leave in the folder of states


class Growing(Protocol):
    """What is asked of ``smk.context.SnakemakeContext``."""

    campaign: Campaign
    dry: bool

    @property
    def results(self) -> str:
        """The campaign's results folder."""
        ...

    @property
    def awaited(self) -> tuple[str, ...]:
        """Ids of the runs that are not done."""
        ...

    def grow(self, plan: RunPlan) -> list[str]:
        """Take over a plan; ids of the runs that are to be run from now on."""
        ...


@dataclass
class Looks:
    """The looks of one call."""

    context: Growing
    plan: RunPlan
    # Of this call alone: what an earlier one has left says nothing about the files of today.
    name: str = field(default_factory=lambda: f"{OUTPUT}{time.time_ns()}-")
    # The runs that each look waits for, and how many of the looks have been made.
    _blocks: list[list[str]] = field(default_factory=list)
    _made: int = 0

    def __post_init__(self) -> None:
        """Find the runs that the first look waits for."""
        first = [run_id for run_id in self.context.awaited if self.about(run_id)]
        if first or self.plan.due:
            self._blocks.append(first)
        if self._blocks and not self.context.dry:
            atexit.register(self._tidy)

    @property
    def awaited(self) -> bool:
        """Whether this call looks at any point."""
        return bool(self._blocks)

    def about(self, run_id: str) -> bool:
        """Whether a look waits for this run, however it ends."""
        return run_id in self.plan.looked_at

    def pattern(self) -> str:
        """Path of what look ``{number}`` leaves, with this wildcard."""
        return f"{self.context.results}/{STATES_FOLDER}/{self.name}{{number}}"

    def runs_before(self, number: int) -> list[str]:
        """The runs that a look waits for; none of one that is not known yet."""
        return self._blocks[number] if number < len(self._blocks) else []

    def needs(self, number: int) -> bool:
        """Whether this look is made."""
        return number < len(self._blocks)

    def after(self, number: int) -> None:
        """Take over what a look that was made has planned; again, without effect."""
        if number < self._made:
            return
        self._made = number + 1
        self.plan = plan_runs(self.context.campaign, begun=set(self.context.awaited))
        new = self.context.grow(self.plan)
        if block := [run_id for run_id in new if self.about(run_id)]:
            self._blocks.append(block)

    def _tidy(self) -> None:
        for number in range(len(self._blocks)):
            Path(self.pattern().format(number=number)).unlink(missing_ok=True)
