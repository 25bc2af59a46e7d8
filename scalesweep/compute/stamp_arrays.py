"""Arrays and metrics of the steps that the ranks of a program have printed, as a native one's: what
the steps that all ranks have in common took, the time between them, and their spans."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.compute import stamps
from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_metrics import Reading, UnreadableError
from scalesweep.core.record import EPOCH_TIMES, OF_STEPS, STEP_TIMES, WARMUP_STEP_TIMES

# A rank's clock went back by more than this between two steps: it was set.
_SET_S = 1e-3
# Steps may take so much more than the run that they are of: clocks differ.
_LONGER, _LONGER_S = 1.01, 0.1
BETWEEN = f"{stamps.SPAN}between"
PARTS = {
    "span_compute": ("span_forward", "span_backward", "span_optimizer"),
    "span_communication": ("span_data_parallel", "span_tensor_parallel", "span_pipeline_wait"),
}
# Spans that each step has; others are activities, which take no time if they are not printed.
EACH = ("span_input", *PARTS, *(part for parts in PARTS.values() for part in parts))

# By so much of a span its parts may differ from it.
_PARTS_OFF = 0.05

Matrix = NDArray[np.float64]  # [step, rank]


class Steps:
    """The steps that the ranks have in common: numbers by name ``[step, rank]``, NaN if a line has
    none; ``seconds`` of each and ``between``, since the one before (None: not known).

    Raises UnreadableError where a number would be wrong; what is left out is in ``warnings``.
    """

    def __init__(self, ranks: Sequence[stamps.Rank], declared: int, wall_s: float | None) -> None:
        self.ranks, self.wall_s, self.warnings = len(ranks), wall_s, list[str]()
        self.host_clock = [number for number, rank in enumerate(ranks) if rank.host_clock]
        self.keys = self._shared([set(rank.steps) for rank in ranks])
        self.whole = all(len(rank.steps) == len(self.keys) for rank in ranks)
        rows = [[rank.steps[key] for rank in ranks] for key in self.keys]
        self.numbers_of = {
            name: np.array([[step.get(name, np.nan) for step in row] for row in rows])
            for name in sorted({name for row in rows for step in row for name in step})
        }
        epochs, steps = np.diff(np.array(self.keys).reshape(-1, 2), axis=0).T
        again = np.array([step in (0, 1) for _, step in self.keys[1:]], bool) & (epochs == 1)
        self.follows = ((epochs <= 1) & (steps == 1)) | again  # right after the one before
        self.seconds = self._seconds()
        self.between = self._between()
        if self.between is not None:  # without those that follow one that is lost
            known = ~np.isnan(self.between).any(axis=1)
            self.keys = [key for key, there in zip(self.keys, known, strict=True) if there]
            self.numbers_of = {name: values[known] for name, values in self.numbers_of.items()}
            self.seconds, self.between = self.seconds[known], self.between[known]
        self.warm_up = self._warm_up(declared, self.numbers_of.pop(stamps.WARM_UP) > 0)
        self.count = len(self.keys) - self.warm_up

    def has(self, name: str) -> bool:
        """Whether every line has a number of this name."""
        return name in self.numbers_of and not np.isnan(self.numbers_of[name]).any()

    def known(self, name: str) -> Matrix:
        """Numbers by step, 0 if a line has none."""
        return np.nan_to_num(self.numbers_of.get(name, np.zeros((len(self.keys), 1))))

    def lacking(self, name: str, begin: int = 0) -> str:
        """Where the first number is missing, from a step on; empty if nowhere, or everywhere."""
        lacks = np.isnan(self.numbers_of.get(name, np.zeros((1, 1)))[begin:])
        if not lacks.any():
            return ""
        if (silent := lacks.all(axis=0)).any():
            return f"rank {int(silent.argmax())} prints none"
        step, rank = np.argwhere(lacks)[0]
        return f"{stamps.shown(self.keys[begin + step])} of rank {rank} has none"

    def _shared(self, sets: Sequence[set[tuple[int, int]]]) -> list[tuple[int, int]]:
        """The steps that all ranks have printed; raises UnreadableError if more than a few are
        missing, and if a rank counts from another number: equal numbers would be other steps."""
        union, shared = set.union(*sets), set.intersection(*sets)
        ends = [(min(keys), max(keys)) for keys in sets]
        words = [" to ".join(map(stamps.shown, both)) for both in ends]
        first, last = ends[0]
        for number, ((begin, end), said) in enumerate(zip(ends, words, strict=True)):
            if begin != first and end != last and (begin > first) == (end > last):
                raise UnreadableError(
                    f"stamps: rank 0 printed {words[0]}, rank {number} {said}: count steps from "
                    "the same number on all ranks"
                )
        lost = len(union) - len(shared)
        if lost > max(1, stamps.LOST * len(union)):
            fewest = min(range(len(sets)), key=lambda rank: len(sets[rank]))
            raise UnreadableError(
                f"stamps: rank {fewest} printed {len(sets[fewest]):,} of {len(union):,} steps, the "
                f"first that it lacks is {stamps.shown(min(union - sets[fewest]))}; if ranks write "
                "into each other's lines let the launcher label them, or give each rank a file"
            )
        if lost:
            self.warnings.append(
                f"{lost:,} of {len(union):,} steps are left out, because not every rank has "
                f"printed them (the first is {stamps.shown(min(union - shared))})"
            )
        return sorted(shared)

    def _seconds(self) -> Matrix:
        """Seconds of each step; raises UnreadableError if some have none, or if they are longer
        than the run."""
        if not self.has(stamps.SECONDS):
            lacking = self.lacking(stamps.SECONDS) or "none has it"
            raise UnreadableError(f"stamps: lines need 's', the seconds of a step: {lacking}")
        seconds = self.numbers_of[stamps.SECONDS]
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
        passed = np.full(self.seconds.shape, np.nan)
        passed[0] = 0
        if self.has(stamps.BEGIN):
            gaps = np.diff(self.numbers_of[stamps.BEGIN], axis=0) - self.seconds[:-1]
            passed[1:] = np.where(self.follows[:, None], gaps, np.nan)
        total = np.nansum(passed + self.seconds, axis=0)
        back, unknown = np.argwhere(passed < -_SET_S), np.isnan(passed).any(axis=1).sum()
        self.clock_set = bool(len(back)) or self._too_long(total.max())
        if self.clock_set:
            longest = np.unravel_index(np.nanargmax(passed), passed.shape)
            step, rank = back[0] if len(back) else longest
            why = f"a clock was set, or steps overlap: {passed[step, rank]:.3g} s lie before "
            why += f"{stamps.shown(self.keys[step])} of rank {rank}"
        elif unknown <= max(2, 2 * stamps.LOST * len(passed)):
            return np.maximum(passed, 0)
        elif self.has(stamps.BEGIN):
            why = f"the steps before {unknown:,} of {len(passed):,} are not printed"
        else:
            why = "lines have no 'begin'"
        rates = "nor are rates" if self.clock_set else "rates are of the time within steps"
        self.warnings.append(f"the time between steps is not known ({why}): {rates}")
        return None

    def _warm_up(self, declared: int, marked: NDArray[np.bool_]) -> int:
        """How many of the steps are warm-up: declared, or ``marked`` by the program."""
        for step, rank in np.argwhere(marked[1:] & ~marked[:-1])[:1]:
            raise UnreadableError(
                f"stamps: {stamps.shown(self.keys[step + 1])} of rank {rank} is marked as warm-up, "
                "earlier ones are not"
            )
        warm_up = max(declared, int(marked.sum(axis=0).max()))
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
        for name in (name for name in self.numbers_of if name.startswith(stamps.SPAN)):
            if name in EACH and (lacking := self.lacking(name, self.warm_up)):
                said = f"span {name.removeprefix(stamps.SPAN)} is left out: {lacking}"
                self.warnings.append(f"{said}; print 0 where it takes no time")
            else:
                spans[name] = self.known(name)[self.warm_up :]
        return spans


def read_stamps(
    order: StampsOrder, work: Path, ranks: int, srun_labels: bool, wall_s: float | None = None
) -> Reading:
    """What the stamps of a run with so many ranks give; ``work``: the folder of its attempt,
    ``wall_s``: seconds that the program ran, if they are known.

    Raises UnreadableError if a number would be wrong, LogsGoneError, OSError.
    """
    by_rank, lines, damaged = stamps.read_ranks(order, work, ranks, srun_labels)
    steps = Steps(by_rank, order["warmup"], wall_s)
    about: dict[str, Any] = {
        "lines": lines, "damaged": len(damaged), "steps": steps.count, "warmup": steps.warm_up,
    }  # fmt: skip
    # With the warm-up: the benchmark's `work` is of all that it trains on.
    spans = {"method": "printed by the program", "steps_per_epoch": len(steps.keys)}
    result = Reading(notes={"stamps": about, "spans": spans})
    _add_steps(steps, result)
    _add_spans(steps, result)
    _add_epochs(steps, result)
    _add_facts(by_rank, result)
    if damaged:
        said = f"{len(damaged):,} damaged lines are left out, the first is {damaged[0]}"
        steps.warnings.insert(0, said)
    result.warnings = [*steps.warnings, *result.warnings]
    if result.warnings:
        about["warnings"] = list(result.warnings)
    return result


def _put(result: Reading, name: str, value: Any) -> None:
    """Add a metric; one that is no usual one is a span, in seconds."""
    meant = stamps.STAMPED.get(name, stamps.STAMPED[STEP_TIMES]).meaning
    result.metrics[name] = {"value": float(value), **meant}


def _add_steps(steps: Steps, result: Reading) -> None:
    """Add the seconds of steps and between them; samples and tokens per second of all ranks."""
    warm_up, arrays = steps.warm_up, result.arrays
    seconds = arrays[STEP_TIMES] = steps.seconds[warm_up:]
    _put(result, STEP_TIMES, seconds.mean())
    elapsed = seconds.sum(axis=0)
    if warm_up:
        arrays[WARMUP_STEP_TIMES] = steps.seconds[:warm_up]
    if steps.between is not None:
        arrays[BETWEEN] = steps.between[warm_up:]
        elapsed = elapsed + arrays[BETWEEN].sum(axis=0)
    for name in stamps.AMOUNTS:
        every = steps.known(name).sum(axis=1)
        amounts = every[warm_up:]
        if lacking := steps.lacking(name):
            result.warnings.append(f"{name}_per_second is not known: {lacking} ({name})")
        elif amounts.any() and elapsed.max() > 0 and not steps.clock_set:
            _put(result, f"{name}_per_second", amounts.sum() / elapsed.max())
        if name == "samples" and amounts.any() and not lacking:
            result.work["samples_per_epoch"] = round(every.sum())
            if (amounts == amounts[0]).all():
                result.notes["batch"] = {"global": float(amounts[0])}


def _add_spans(steps: Steps, result: Reading) -> None:
    """Keep the spans of steps; what a program's own spans take becomes a metric of each."""
    spans = steps.spans()
    for whole, parts in PARTS.items():
        printed = [part for part in parts if part in steps.numbers_of]
        if printed and all(part in spans for part in printed):
            added = np.sum([spans[part] for part in printed], axis=0)
            said = spans.setdefault(whole, added).sum()
            if abs(said - added.sum()) > _PARTS_OFF * said:
                words = ", ".join(part.removeprefix(stamps.SPAN) for part in printed)
                result.warnings.append(
                    f"{words} add up to {added.sum():.4g} s, {whole.removeprefix(stamps.SPAN)} to "
                    f"{said:.4g} s: the parts are left out"
                )
                spans = {name: values for name, values in spans.items() if name not in printed}
    if spans and steps.ranks == 1:  # with nobody
        spans.setdefault("span_communication", np.zeros((steps.count, 1)))
    for name, values in spans.items():
        if name in OF_STEPS:
            result.arrays[name] = values
        else:
            _put(result, name, values.mean())


def _add_epochs(steps: Steps, result: Reading) -> None:
    """Add the times of epochs, from the begin of the first step to the end of the last, if all
    ranks have printed all steps of several."""
    epochs = np.array([epoch for epoch, _ in steps.keys])
    begins = np.append(0, np.flatnonzero(np.diff(epochs)) + 1)
    if len(begins) < 2 or not steps.whole or steps.between is None:
        return
    between = steps.between.copy()
    between[begins] = 0
    local = np.add.reduceat(steps.seconds + between, begins)
    result.arrays[EPOCH_TIMES[0]] = local
    result.arrays[EPOCH_TIMES[1]] = np.broadcast_to(local.max(axis=1, keepdims=True), local.shape)
    counts = np.diff(np.append(begins, len(epochs)))
    if (counts == counts[0]).all():
        result.notes["spans"]["steps_per_epoch"] = int(counts[0])
        result.work.pop("samples_per_epoch", None)
        samples = np.add.reduceat(steps.known("samples").sum(axis=1), begins)
        if samples[0] and (samples == samples[0]).all():
            result.work["samples_per_epoch"] = round(samples[0])


def _add_facts(ranks: Sequence[stamps.Rank], result: Reading) -> None:
    """Add memory, hosts and versions, each if all ranks have printed it."""
    for kind, name in stamps.MEMORY.items():
        held = np.array([rank.memory.get(kind, np.nan) for rank in ranks])
        if not np.isnan(held).any():
            _put(result, name, held.mean())
            result.arrays[name] = held
        elif not np.isnan(held).all():
            silent = int(np.isnan(held).argmax())
            result.warnings.append(f"{name} is not known: rank {silent} prints none")
    hosts = [rank.host for rank in ranks if rank.host]
    result.hosts = hosts if len(hosts) == len(ranks) else []
    result.versions = dict(ranks[0].versions)
