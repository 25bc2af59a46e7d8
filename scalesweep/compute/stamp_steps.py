"""The steps that ranks have in common: their seconds, the time between them, and their spans."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.compute.log_metrics import UnreadableError
from scalesweep.compute.stamps import BEGIN, LOST, SECONDS, SPAN, Rank, shown

# A rank's clock went back by more than this between two steps: it was set.
_SET_S = 1e-3
# Steps may take so much more than the run that they are of: clocks differ.
_LONGER, _LONGER_S = 1.01, 0.1
_ROUNDED_S = 1e-6
BETWEEN = f"{SPAN}between"
# What lies between steps; where a program times it within one, it is moved behind it. By length.
ACTIVITIES = tuple(f"{SPAN}{name}" for name in ("checkpoint", "validation", "logging"))
PARTS = {
    "span_compute": ("span_forward", "span_backward", "span_optimizer"),
    "span_communication": ("span_data_parallel", "span_tensor_parallel", "span_pipeline_wait"),
}
# Spans that each step has; others are activities, which take no time if they are not printed.
EACH = ("span_input", *PARTS, *(part for parts in PARTS.values() for part in parts))

Matrix = NDArray[np.float64]  # [step, rank]


class Steps:
    """The steps that the ranks have in common: numbers by name ``[step, rank]``, NaN if a line has
    none; ``seconds`` of each and ``between``, since the one before (None: not known).

    Raises UnreadableError where a number would be wrong; what is left out is in ``warnings``.
    """

    def __init__(self, ranks: Sequence[Rank], declared: int, wall_s: float | None) -> None:
        self.ranks, self.wall_s, self.warnings = len(ranks), wall_s, list[str]()
        self.host_clock = [number for number, rank in enumerate(ranks) if rank.host_clock]
        said = set.union(*(rank.epochs for rank in ranks))
        if len(said) > 1:
            raise UnreadableError("stamps: some lines say their epoch and others do not")
        self.epochs = said == {True}
        self.keys = self._shared([set(rank.steps) for rank in ranks])
        self.whole = all(len(rank.steps) == len(self.keys) for rank in ranks)
        rows = [[rank.steps[key] for rank in ranks] for key in self.keys]
        self.numbers_of = {
            name: np.array([[step.get(name, np.nan) for step in row] for row in rows])
            for name in sorted({name for row in rows for step in row for name in step})
        }
        marked = np.array([[key in rank.marked for rank in ranks] for key in self.keys])
        epochs, steps = np.diff(np.array(self.keys).reshape(-1, 2), axis=0).T
        again = np.array([step in (0, 1) for _, step in self.keys[1:]], bool) & (epochs == 1)
        self.follows = ((epochs <= 1) & (steps == 1)) | again  # right after the one before
        self.seconds = self._seconds()
        self._move_out()
        self.clock_set = False  # so that this run's rate is not of the same time as another's
        self.between = self._between()
        if self.between is not None:  # without those that follow one that is lost
            known = ~np.isnan(self.between).any(axis=1)
            self.keys = [key for key, there in zip(self.keys, known, strict=True) if there]
            self.numbers_of = {name: values[known] for name, values in self.numbers_of.items()}
            self.seconds, self.between = self.seconds[known], self.between[known]
            marked = marked[known]
        self.warm_up = self._warm_up(declared, marked)
        self.count = len(self.keys) - self.warm_up

    def has(self, name: str) -> bool:
        """Whether every line has a number of this name."""
        return name in self.numbers_of and not np.isnan(self.numbers_of[name]).any()

    def known(self, name: str) -> Matrix:
        """Numbers by step, 0 if a line has none."""
        return np.nan_to_num(self.numbers_of.get(name, np.zeros((len(self.keys), 1))))

    def shown(self, place: Any) -> str:
        """``step 7``, ``step 7 of epoch 2``."""
        return shown(self.keys[place], self.epochs)

    def lacking(self, name: str, begin: int = 0) -> str:
        """Where the first number is missing, from a step on; empty if nowhere, or everywhere."""
        lacks = np.isnan(self.numbers_of.get(name, np.zeros((1, 1)))[begin:])
        if not lacks.any():
            return ""
        if (silent := lacks.all(axis=0)).any():
            return f"rank {int(silent.argmax())} prints none"
        step, rank = np.argwhere(lacks)[0]
        return f"{self.shown(begin + step)} of rank {rank} has none"

    def _shared(self, sets: Sequence[set[tuple[int, int]]]) -> list[tuple[int, int]]:
        """The steps that all ranks have printed; raises UnreadableError if more than a few are
        missing, and if a rank counts from another number: equal numbers would be other steps."""
        union, shared = set.union(*sets), set.intersection(*sets)
        ends = [(min(keys), max(keys)) for keys in sets]
        words = [" to ".join(shown(key, self.epochs) for key in both) for both in ends]
        first, last = ends[0]
        for number, ((begin, end), said) in enumerate(zip(ends, words, strict=True)):
            if begin != first and end != last and (begin > first) == (end > last):
                raise UnreadableError(
                    f"stamps: rank 0 printed {words[0]}, rank {number} {said}: count steps from "
                    "the same number on all ranks"
                )
        lost = len(union) - len(shared)
        if lost > max(1, LOST * len(union)):
            fewest = min(range(len(sets)), key=lambda rank: len(sets[rank]))
            raise UnreadableError(
                f"stamps: rank {fewest} printed {len(sets[fewest]):,} of {len(union):,} steps, the "
                f"first that it lacks is {shown(min(union - sets[fewest]), self.epochs)}"
            )
        if lost:
            self.warnings.append(
                f"{lost:,} of {len(union):,} steps are left out, because not every rank has "
                f"printed them (the first is {shown(min(union - shared), self.epochs)})"
            )
        return sorted(shared)

    def _move_out(self) -> None:
        """Take activities out of the steps that hold them, into the time before the next.

        Each lies where it leaves the least time over: beside the spans of its step, or between it
        and the step before.
        """
        names = [name for name in ACTIVITIES if name in self.numbers_of]
        if not names:
            return
        spans = [[whole] if whole in self.numbers_of else parts for whole, parts in PARTS.items()]
        room = self.seconds - sum(self.known(name) for name in ("span_input", *spans[0], *spans[1]))
        before = self._before()
        for name in names:
            took = self.known(name)
            inside, outside = room - took > -_ROUNDED_S, before - took > -_ROUNDED_S
            # If it is not known what was before, what fits is inside.
            closer = np.where(inside & outside, room < before, inside | (room > before))
            moved = np.where(np.where(np.isnan(before), inside, closer), took, 0)
            late = np.where(self.follows[:, None], moved[:-1], 0)
            room, before = room - moved, before - (took - moved)
            self.seconds = np.maximum(self.seconds - moved, 0)
            took = took - moved
            took[1:] += late
            self.numbers_of[name] = took

    def _before(self) -> Matrix:
        """Seconds between each step and the one before, NaN if they are not known."""
        before = np.full((len(self.keys), self.ranks), np.nan)
        if self.has(BEGIN):
            gaps = np.diff(self.numbers_of[BEGIN], axis=0) - self.seconds[:-1]
            before[1:] = np.where(self.follows[:, None], gaps, np.nan)
        return before

    def _seconds(self) -> Matrix:
        """Seconds of each step; raises UnreadableError if some have none, or if they are longer
        than the run."""
        if lacking := self.lacking(SECONDS):
            raise UnreadableError(f"stamps: some lines have 's', the seconds of a step: {lacking}")
        if SECONDS not in self.numbers_of:
            raise UnreadableError("stamps: lines need 's', the seconds of a step")
        seconds = self.numbers_of[SECONDS]
        total = seconds.sum(axis=0)
        if self._too_long(total.max()):
            raise UnreadableError(
                f"stamps: the steps of rank {int(total.argmax())} add up to "
                f"{total.max():.4g} s, and the run took {self.wall_s:.4g} s: print seconds, of "
                "steps that follow each other"
            )
        return seconds

    def _too_long(self, total: float) -> bool:
        """Whether the run did not take so long."""
        return self.wall_s is not None and total > _LONGER * self.wall_s + _LONGER_S

    def _between(self) -> Matrix | None:
        """Seconds from the end of the step before, 0 for the first of all; None, with a warning, if
        they are not known of all steps but those that follow one that is lost."""
        passed = self._before()
        passed[0] = np.nan_to_num(passed[0])
        total = np.nansum(passed + self.seconds, axis=0)
        unknown = int(np.isnan(passed).any(axis=1).sum())
        self.clock_set = True
        if (back := np.argwhere(passed < -_SET_S)).size:
            step, rank = back[0]
            why = f"the clock of rank {rank} went back by {-passed[step, rank]:.3g} s"
            why += f" before {self.shown(step)}, or steps overlap"
        elif self._too_long(total.max()):
            rank = int(total.argmax())
            longest = int(np.nanargmax(passed[:, rank]))
            why = f"the steps of rank {rank} reach over more time than the run took "
            why += f"({passed[longest, rank]:.2g} s lie before {self.shown(longest)})"
        else:
            self.clock_set = False
            if unknown <= max(2, 2 * LOST * len(passed)):
                return np.maximum(passed, 0)
            why = f"the steps before {unknown:,} of {len(passed):,} are not printed"
            why = why if self.has(BEGIN) else "lines have no 'begin'"
        rates = "nor are rates" if self.clock_set else "rates are of the time within steps"
        self.warnings.append(f"the time between steps is not known ({why}): {rates}")
        return None

    def _warm_up(self, declared: int, marked: NDArray[np.bool_]) -> int:
        """How many of the steps are warm-up: declared, or ``marked`` by the program."""
        counts = np.vstack([~marked, np.ones((1, self.ranks), bool)]).argmax(axis=0)
        late = marked & (np.arange(len(self.keys))[:, None] >= counts)
        for step, rank in np.argwhere(late)[:1]:
            raise UnreadableError(
                f"stamps: {self.shown(step)} of rank {rank} is marked as warm-up, "
                "earlier ones are not"
            )
        warm_up = max(declared, int(counts.max()))
        if warm_up >= len(self.keys):
            raise UnreadableError(
                f"stamps: a warm-up of {warm_up} leaves none of {len(self.keys)} steps"
            )
        return warm_up

    def spans(self) -> dict[str, Matrix]:
        """Spans of the steps after the warm-up; a warning for each that is left out: that no clock
        has seen end, or that a step lacks."""
        for number in self.host_clock[:1]:
            self.warnings.append(
                f"rank {number} computes on a GPU and stamps without 'synchronize': the host's "
                "clock sees when kernels are enqueued, so its spans are left out"
            )
            return {}
        spans = {}
        for name in (name for name in self.numbers_of if name.startswith(SPAN)):
            if name in EACH and (lacking := self.lacking(name, self.warm_up)):
                said = f"span {name.removeprefix(SPAN)} is left out: {lacking}"
                self.warnings.append(f"{said}; print 0 where it takes no time")
            else:
                spans[name] = self.known(name)[self.warm_up :]
        return spans
