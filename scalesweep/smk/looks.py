"""Blocks of runs within one call of Snakemake: after each, a look says which others there are.

Snakemake's DAG grows at a checkpoint, the rule ``look``. Look 0 waits for those runs of points with
``repeats: {min, max, until}``, and of a budget that is spent in rounds, that are pending when the
call begins, each further one for the block that the one before it has asked for, until none asks
for more. Runs that failed in an earlier call are waited for last: one that fails for ever keeps no
other point from its repeats.
"""

import atexit
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from scalesweep.config.campaign import Campaign
from scalesweep.planning.plan import STATES_FOLDER
from scalesweep.planning.repeats import RepeatPlan, plan_repeats
from scalesweep.planning.run_state import FAILED, RunState

OUTPUT = "look-"  # begins the names of what the looks leave in the folder of states


class Growing(Protocol):
    """What is asked of ``smk.context.SnakemakeContext``."""

    campaign: Campaign
    states: Mapping[str, RunState]
    dry: bool

    @property
    def results(self) -> str:
        """The campaign's results folder."""
        ...

    @property
    def awaited(self) -> tuple[str, ...]:
        """Ids of the runs that are not done."""
        ...

    def grow(self, campaign: Campaign) -> list[str]:
        """Plan the runs of ``campaign`` too; ids of those that are to be run."""
        ...


@dataclass
class Looks:
    """The looks of one call."""

    context: Growing
    plan: RepeatPlan
    # Of this call alone: what an earlier one has left says nothing about the files of today.
    name: str = field(default_factory=lambda: f"{OUTPUT}{time.time_ns()}-")
    # The runs that each look waits for, and how many of the looks have been made.
    _blocks: list[list[str]] = field(default_factory=list)
    _made: int = 0
    # Runs that have failed in earlier calls.
    _late: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Sort the awaited runs into those that the first look waits for and the others."""
        states = self.context.states
        waiting = [i for i in self.context.awaited if i in self._candidates()]
        self._late = [i for i in waiting if states[i].status == FAILED]
        first = [i for i in waiting if states[i].status != FAILED]
        if first or self.plan.due:
            self._blocks.append(first)
        elif self._late:
            self._blocks.append(self._late)
            self._late = []
        if self._blocks and not self.context.dry:
            atexit.register(self._tidy)

    @property
    def awaited(self) -> bool:
        """Whether this call looks at any point."""
        return bool(self._blocks)

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
        self.plan = plan_repeats(self.context.campaign)
        new = self.context.grow(self.plan.campaign)
        if block := [run_id for run_id in new if run_id in self._candidates()]:
            self._blocks.append(block)
        elif self._late:
            self._blocks.append(self._late)
            self._late = []

    def _tidy(self) -> None:
        for number in range(len(self._blocks)):
            Path(self.pattern().format(number=number)).unlink(missing_ok=True)

    def _candidates(self) -> set[str]:
        return self.plan.run_ids
