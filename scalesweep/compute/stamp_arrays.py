"""Arrays and metrics of the steps that the ranks of a program have printed, as a native one's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_metrics import UnreadableError
from scalesweep.compute.native_format import Meaning, MetricValue
from scalesweep.compute.stamp_metrics import MEANINGS, MEMORY
from scalesweep.compute.stamp_rows import (
    AMOUNTS,
    BEGIN,
    SECONDS,
    SPAN,
    Column,
    Printed,
    Rows,
    read_rows,
    shown,
)
from scalesweep.core.host import cpu_set
from scalesweep.core.record import EPOCH_TIMES, OF_STEPS, STEP_TIMES, WARMUP_STEP_TIMES

# Of the steps, so many may be lost (damaged lines, or lines that a rank has not printed).
LOST = 0.01
# A rank's clock went back by more than this between two steps: it was set.
_SET_S = 1e-3
# Steps may take so much more than the run that they are of: clocks differ.
_LONGER, _LONGER_S = 1.01, 0.1
# By so much of a span its parts may differ from it.
_PARTS_OFF = 0.05
BETWEEN = f"{SPAN}between"
# What lies between steps; where a program times it within one, it is moved behind it.
ACTIVITIES = tuple(f"{SPAN}{name}" for name in ("checkpoint", "validation", "logging"))
PARTS = {
    "span_compute": ("span_forward", "span_backward", "span_optimizer"),
    "span_communication": ("span_data_parallel", "span_tensor_parallel", "span_pipeline_wait"),
}
# Spans that each step has; others are activities, which take no time if they are not printed.
EACH = ("span_input", *PARTS, *(part for parts in PARTS.values() for part in parts))

Matrix = NDArray[np.float64]  # [step, rank]


@dataclass
class Stamped:
    """What the stamps of a run give: parts of its record, and arrays for samples.npz."""

    metrics: dict[str, MetricValue] = field(default_factory=dict)
    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    versions: dict[str, str | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def put(self, name: str, value: float, meaning: Meaning) -> None:
        """Add a metric."""
        self.metrics[name] = {"value": float(value), **meaning}


def read_stamps(
    order: StampsOrder, work: Path, ranks: int, srun_labels: bool, wall_s: float | None = None
) -> Stamped:
    """What the stamps of a run with so many ranks give; ``work``: the folder of its attempt,
    ``wall_s``: seconds that the program ran, if they are known.

    Raises UnreadableError if a number would be wrong, LogsGoneError, OSError.
    """
    printed, result = read_rows(order, work, ranks, srun_labels), Stamped()
    for rows in printed.rows:
        move_out(rows)
    _note_faults(printed, result)
    roles = printed.roles
    meet = order["meet"] == "all" or (order["meet"] is None and len(roles) < 2)
    about: dict[str, Any] = {"lines": printed.lines, "damaged": printed.damage.lines}
    result.notes["stamps"] = about
    if roles:
        about["roles"] = {role: cpu_set(set(numbers)) for role, numbers in roles.items()}
    if not meet:
        result.notes["mode"] = {"synchronous": False}
    if len(roles) > 1 and order["meet"] is None:
        result.warnings.append(
            f"ranks have {len(roles)} roles ({', '.join(roles)}): their steps are not "
            "compared; say 'meet: all' in benchmark.yaml if all ranks meet in each step, else "
            f"'meet: none' and a main_metric, such as samples_per_second_{min(roles)}"
        )
    groups = {"": list(range(ranks))}
    if len(roles) > 1 and not meet:
        groups = {f"_{role}": numbers for role, numbers in roles.items()}
        if sum(map(len, groups.values())) < ranks:
            raise UnreadableError("stamps: some ranks print a role and others do not")
    for suffix, numbers in groups.items():
        _add_group(_Group(printed, numbers, meet, wall_s), suffix, order["warmup"], result)
    _add_facts(printed.rows, result)
    if result.warnings:
        about["warnings"] = result.warnings
    return result


def _note_faults(printed: Printed, result: Stamped) -> None:
    damage, twice = printed.damage, sum(rows.twice for rows in printed.rows)
    if damage.unsealed and (first := damage.first or damage.first_named):
        raise UnreadableError(
            f"stamps: {first} is damaged, and others without a checksum may be two halves: "
            "print the checksum, let the launcher label lines, or give each rank a file"
        )
    if damage.lines > max(1, LOST * printed.lines):
        raise UnreadableError(
            f"stamps: {damage.lines:,} of {printed.lines + damage.lines:,} lines are damaged, the "
            f"first is {damage.first}: ranks write into each other's lines; let the launcher label "
            "lines, or give each rank a file (stamps: 'spans-*.jsonl')"
        )
    if damage.lines:
        result.warnings.append(
            f"{damage.lines:,} damaged lines are left out, the first is {damage.first}"
        )
    if twice:
        result.warnings.append(f"{twice:,} steps are printed twice, alike, and counted once")


def move_out(rows: Rows) -> None:
    """Take activities out of the steps of a rank that hold them, into the time before the next.

    A step holds what fits beside its spans better than between it and the one before: of all sets
    of its activities, that by which the least is too long for its place, then the least left over.
    """
    names = [name for name in ACTIVITIES if name in rows.columns]
    if not names or not rows.has(SECONDS):
        return
    taken = np.column_stack([rows.known(name) for name in names])
    seconds, follows = rows.columns[SECONDS], np.append(rows.follows(), False)
    room, before = seconds - _in_spans(rows), _before(rows)
    inside, least = np.zeros_like(taken), np.full((len(taken), 2), np.inf)
    for count in range(len(names) + 1):
        for chosen in combinations(range(len(names)), count):
            within = taken * np.isin(np.arange(len(names)), chosen)
            left, right = within.sum(axis=1), (taken - within).sum(axis=1)
            spare = np.column_stack(
                [np.where(left > 0, room - left, 0), np.where(right > 0, before - right, 0)]
            )
            fits = np.column_stack(
                [np.round(-np.minimum(spare, 0).sum(axis=1), 6), spare.sum(axis=1)]
            )
            better = (fits[:, 0] < least[:, 0]) | (
                (fits[:, 0] == least[:, 0]) & (fits[:, 1] < least[:, 1])
            )
            # If it is not known what was before, what fits is inside.
            blind = np.isnan(before) & (left > 0) & (room - left >= -1e-6) & ~inside.any(axis=1)
            better = np.where(np.isnan(before), blind, better)
            inside[better], least[better] = within[better], fits[better]
    moved = np.where(follows[:, None], inside, 0)
    rows.columns[SECONDS] = np.maximum(seconds - inside.sum(axis=1), 0)
    for column, name in enumerate(names):
        rows.columns[name] = taken[:, column] - inside[:, column]
        rows.columns[name][1:] += moved[:-1, column]
    if BETWEEN in rows.columns:
        rows.columns[BETWEEN][1:] += moved[:-1].sum(axis=1)


def _before(rows: Rows) -> Column:
    """Seconds between each step and the one before, NaN if they are not known."""
    if rows.has(BETWEEN):
        return rows.columns[BETWEEN]
    before = np.full(len(rows.keys), np.nan)
    if rows.has(BEGIN) and rows.has(SECONDS):
        begins, seconds = rows.columns[BEGIN], rows.columns[SECONDS]
        before[1:] = np.where(rows.follows(), np.diff(begins) - seconds[:-1], np.nan)
    return before


def _in_spans(rows: Rows) -> Column:
    """The seconds of each step that its spans count."""
    total = rows.known("span_input")
    for whole, parts in PARTS.items():
        for name in (whole,) if whole in rows.columns else parts:
            total = total + rows.known(name)
    return total


class _Group:
    """Ranks that are looked at together, and of each the steps that count.

    ``places``: by rank the rows of these steps. ``seconds`` and ``between`` (None if it is not
    known) are by rank, with a number for each of them.
    """

    def __init__(
        self, printed: Printed, numbers: Sequence[int], meet: bool, wall_s: float | None
    ) -> None:
        self.numbers, self.meet, self.wall_s = numbers, meet, wall_s
        self.rows = [printed.rows[rank] for rank in numbers]
        self.epochs = all(rows.epochs for rows in self.rows)
        if not self.epochs and any(rows.keys[:, 0].any() for rows in self.rows):
            raise UnreadableError("stamps: some lines say their epoch and others do not")
        self.alike = all(np.array_equal(rows.keys, self.rows[0].keys) for rows in self.rows)
        self.places = [np.arange(len(rows.keys)) for rows in self.rows]
        self.said: list[str] = []
        self.lost = 0
        self.clock_set = False  # so that this run's rate is not of the same time as another's
        if meet and not self.alike:
            self._keep_shared()
        every = self._every_second()
        self._keep(every)
        self.seconds = self.picked(every)
        self._check_seconds()
        self.between = self._between(every) if self.has(SECONDS) else None
        self.seconds = self.picked(every)
        if not len(self.seconds[0]):
            raise UnreadableError("stamps: no step is known whole: print 's', its seconds")

    def has(self, name: str) -> bool:
        """Whether every line has a number in a column."""
        return all(rows.has(name) for rows in self.rows)

    def picked(self, every: Sequence[Column]) -> list[Column]:
        """Of numbers by rank and row those of the steps that count."""
        return [column[places] for column, places in zip(every, self.places, strict=True)]

    def column(self, name: str, warm_up: int = 0) -> list[Column]:
        """A column by rank, of the steps that count after the warm-up; 0 if there is no number."""
        return [each[warm_up:] for each in self.picked([rows.known(name) for rows in self.rows])]

    def lacking(self, name: str, warm_up: int | None = None) -> str:
        """Where the first number of a column is missing; empty if nowhere, or everywhere.

        ``warm_up``: look only at the steps that count and follow these.
        """
        if not any(name in rows.columns for rows in self.rows):
            return ""
        for rank, rows, places in zip(self.numbers, self.rows, self.places, strict=True):
            if name not in rows.columns:
                return f"rank {rank} prints none"
            lacks = np.flatnonzero(np.isnan(rows.columns[name]))
            if warm_up is not None:
                lacks = lacks[np.isin(lacks, places[warm_up:])]
            if lacks.size:
                return f"{rows.shown(lacks[0])} of rank {rank} has none"
        return ""

    def _keep_shared(self) -> None:
        """Leave out the steps that some ranks lack; raises UnreadableError for more than a few, and
        if a rank counts from another number: steps of one number would be different steps."""
        sets = [set(map(tuple, rows.keys.tolist())) for rows in self.rows]
        begin, end = min(sets[0]), max(sets[0])
        for rank, keys in zip(self.numbers, sets, strict=True):
            first, last = min(keys), max(keys)
            if (first > begin and last > end) or (first < begin and last < end):
                ours, theirs = (
                    " to ".join(shown(key, self.epochs) for key in ends)
                    for ends in ((begin, end), (first, last))
                )
                raise UnreadableError(
                    f"stamps: rank {self.numbers[0]} printed {ours}, rank {rank} {theirs}: count "
                    "steps from the same number on all ranks"
                )
        union, shared = set.union(*sets), set.intersection(*sets)
        self.lost = len(union) - len(shared)
        if self.lost > max(1, LOST * len(union)):
            fewest = min(range(len(sets)), key=lambda place: len(sets[place]))
            raise UnreadableError(
                f"stamps: rank {self.numbers[fewest]} printed {len(sets[fewest]):,} of "
                f"{len(union):,} steps, the first that it lacks is "
                f"{shown(min(union - sets[fewest]), self.epochs)}; "
                "say 'meet: none' if ranks do not meet in each step"
            )
        self.said.append(
            f"{self.lost:,} of {len(union):,} steps are left out, because not every rank has "
            f"printed them (the first is {shown(min(union - shared), self.epochs)})"
        )
        self.places = [
            np.array([i for i, key in enumerate(rows.keys.tolist()) if tuple(key) in shared], int)
            for rows in self.rows
        ]

    def _every_second(self) -> list[Column]:
        """Seconds of each step, by rank: as printed, or from its begin to that of the next, NaN if
        that is not known. Raises UnreadableError."""
        if self.has(SECONDS):
            return [rows.columns[SECONDS] for rows in self.rows]
        if lacking := self.lacking(SECONDS):
            raise UnreadableError(f"stamps: some lines have 's', the seconds of a step: {lacking}")
        if not self.has(BEGIN):
            raise UnreadableError(
                "stamps: lines need 's', the seconds of a step, or 'begin', when it began"
            )
        every = []
        for rank, rows in zip(self.numbers, self.rows, strict=True):
            passed = np.where(rows.follows(), np.diff(rows.columns[BEGIN]), np.nan)
            if (back := np.flatnonzero(passed < 0)).size:
                raise UnreadableError(
                    f"stamps: the clock of rank {rank} went back by {-passed[back[0]]:.3g} s after "
                    f"{rows.shown(back[0])}; take a clock that is never set"
                )
            every.append(np.append(passed, np.nan))
        return every

    def _keep(self, every: Sequence[Column]) -> None:
        """Count only the steps of which each rank knows something (``every``, by row)."""
        known = [~np.isnan(column) for column in self.picked(every)]
        if self.meet:
            known = [np.logical_and.reduce(known)] * len(known)
        self.places = [places[there] for places, there in zip(self.places, known, strict=True)]

    def _too_long(self, total: float) -> bool:
        """Whether the run did not take so long."""
        return self.wall_s is not None and total > _LONGER * self.wall_s + _LONGER_S

    def _check_seconds(self) -> None:
        """Raise UnreadableError if the steps of a rank take longer than the run."""
        for rank, seconds in zip(self.numbers, self.seconds, strict=True):
            if self._too_long(total := seconds.sum()):
                needed = (
                    "print seconds, of steps that follow each other"
                    if self.has(SECONDS)
                    else "take a clock that is never set, in seconds"
                )
                raise UnreadableError(
                    f"stamps: the steps of rank {rank} add up to {total:.4g} s, and the run took "
                    f"{self.wall_s:.4g} s: {needed}"
                )

    def _between(self, seconds: Sequence[Column]) -> list[Column] | None:
        """Seconds from the end of the step before; None if they are not known of all steps.

        The first step of all has none before it. A step that follows one that is lost is left out.
        """
        if not self.has(BETWEEN) and not self.has(BEGIN):
            self.said.append(
                "the time between steps is not known (lines have no 'begin'): rates are of the "
                "time within steps"
            )
            return None
        every = [_before(rows) for rows in self.rows]
        for rank, rows, passed, steps in zip(self.numbers, self.rows, every, seconds, strict=True):
            if (back := np.flatnonzero(passed < -_SET_S)).size:
                self._say_set(
                    f"the clock of rank {rank} went back by {-passed[back[0]]:.3g} s before "
                    f"{rows.shown(back[0])}, or steps overlap: the time between steps is not "
                    "known, nor are rates"
                )
                return None
            passed[0] = np.nan_to_num(passed[0])
            np.maximum(passed, 0, out=passed)
            if self._too_long(np.nansum(passed) + steps.sum()):
                longest = np.nanargmax(passed)
                self._say_set(
                    f"the steps of rank {rank} reach over more time than the run took "
                    f"({passed[longest]:.2g} s lie before {rows.shown(int(longest))}): its clock "
                    "was set or does not count seconds; the time between steps is not known, nor "
                    "are rates"
                )
                return None
        before = self.places
        self._keep(every)
        left_out = len(before[0]) - len(self.places[0])
        if left_out > max(2, 2 * LOST * len(before[0])):
            self.places = before
            self.said.append(
                f"the time before {left_out:,} of {len(before[0]):,} steps is not known, because "
                "the steps before them are not printed: rates are of the time within steps"
            )
            return None
        return self.picked(every)

    def _say_set(self, text: str) -> None:
        self.said.append(text)
        self.clock_set = True

    def warm_up(self, declared: int) -> int:
        """How many of the steps that count are warm-up: declared, or marked by the program."""
        longest = declared
        for rank, rows, places in zip(self.numbers, self.rows, self.places, strict=True):
            marked = rows.warm[places]
            count = int(np.append(marked, False).argmin())
            if marked[count:].any():
                late = places[count + int(marked[count:].argmax())]
                raise UnreadableError(
                    f"stamps: {rows.shown(late)} of rank {rank} is marked as warm-up, earlier "
                    "ones are not"
                )
            longest = max(longest, count)
        if longest >= (fewest := min(map(len, self.places))):
            raise UnreadableError(f"stamps: a warm-up of {longest} leaves none of {fewest} steps")
        return longest


def _add_group(group: _Group, suffix: str, declared: int, result: Stamped) -> None:
    """Add what a group of ranks gives; names end with ``suffix``."""
    warm_up = group.warm_up(declared)
    result.warnings += group.said
    timed = [seconds[warm_up:] for seconds in group.seconds]
    name = f"step_time{suffix}" if suffix else STEP_TIMES
    result.put(name, np.mean([seconds.mean() for seconds in timed]), MEANINGS[STEP_TIMES])
    elapsed = [seconds.sum() for seconds in timed]
    if group.between is not None:
        pauses = (between[warm_up:].sum() for between in group.between)
        elapsed = [sum(each) for each in zip(elapsed, pauses, strict=True)]
    totals = _add_rates(group, suffix, warm_up, max(elapsed), result)
    if not group.meet:
        for name, columns in _spans(group, warm_up, result).items():
            mean = np.mean([column.mean() for column in columns])
            result.put(f"{name}{suffix}", mean, MEANINGS[STEP_TIMES])
    if suffix:
        return
    result.notes["stamps"] |= {"steps": min(map(len, timed)), "warmup": warm_up}
    spans = result.notes["spans"] = {"method": "printed by the program"}
    if not group.alike and not group.meet:
        result.warnings.append("ranks printed different steps: only means are kept of them")
        return
    spans["steps_per_epoch"] = len(timed[0])
    after = totals[warm_up:]
    if totals.any():
        result.work["samples_per_epoch"] = round(after.sum())
        if (after == after[0]).all():
            result.notes["batch"] = {"global": float(after[0])}
    result.arrays[STEP_TIMES] = np.column_stack(timed)
    if warm_up:
        result.arrays[WARMUP_STEP_TIMES] = np.column_stack([s[:warm_up] for s in group.seconds])
    if not group.meet:
        return  # an account of steps takes all ranks to wait for each other
    if group.between is not None:
        result.arrays[BETWEEN] = np.column_stack([each[warm_up:] for each in group.between])
    _add_spans(group, warm_up, result)
    if group.epochs:
        _add_epochs(group, totals, result)


def _add_rates(
    group: _Group, suffix: str, warm_up: int, elapsed: float, result: Stamped
) -> NDArray[np.float64]:
    """Add samples and tokens per second of all ranks; samples by step, if ranks share steps."""
    totals = np.zeros(0)
    for name in AMOUNTS:
        if lacking := group.lacking(name):
            result.warnings.append(f"{name}_per_second is not known: {lacking} ({name})")
        if not group.has(name):
            continue
        columns = group.column(name)
        amount = sum(column[warm_up:].sum() for column in columns)
        if name == "samples" and len(set(map(len, columns))) == 1:
            totals = np.sum(columns, axis=0)
        if amount > 0 and elapsed > 0 and not group.clock_set:
            rate = f"{name}_per_second"
            result.put(f"{rate}{suffix}", amount / elapsed, MEANINGS[rate])
    return totals


def _spans(group: _Group, warm_up: int, result: Stamped) -> dict[str, list[Column]]:
    """Spans by rank, of the steps that count after the warm-up; a warning for each that is left
    out: that no clock has seen end, or that a step lacks."""
    for rank, rows in zip(group.numbers, group.rows, strict=True):
        if rows.host_clock:
            result.warnings.append(
                f"rank {rank} computes on a GPU and stamps without 'synchronize': the host's clock "
                "sees when kernels are enqueued, so its spans are left out"
            )
            return {}
    spans = {}
    for name in sorted({n for rows in group.rows for n in rows.columns if n.startswith(SPAN)}):
        said = f"span {name.removeprefix(SPAN)} is left out: "
        if name in EACH and (lacking := group.lacking(name, warm_up)):
            result.warnings.append(f"{said}{lacking}; print 0 where it takes no time")
        elif group.meet and name in ACTIVITIES and not group.has(SECONDS):
            result.warnings.append(
                f"{said}steps that only say when they begin last until the next one begins, with "
                "what lies between; print 's'"
            )
        elif not (group.meet and name == BETWEEN):
            spans[name] = group.column(name, warm_up)
    return spans


def _add_spans(group: _Group, warm_up: int, result: Stamped) -> None:
    """Keep the spans of steps; what a program's own spans take becomes a metric of each."""
    spans = {name: np.column_stack(own) for name, own in _spans(group, warm_up, result).items()}
    any_printed = any(name.startswith(SPAN) for rows in group.rows for name in rows.columns)
    for whole, parts in PARTS.items():
        _sum_up(whole, [p for p in parts if any(p in rows.columns for rows in group.rows)],
                spans, result)  # fmt: skip
    host_clock = any(rows.host_clock for rows in group.rows)
    if any_printed and not host_clock and len(group.numbers) == 1:  # with nobody
        spans.setdefault("span_communication", np.zeros((len(group.seconds[0]) - warm_up, 1)))
    for name, values in spans.items():
        if name in OF_STEPS:
            result.arrays[name] = values
        else:
            result.put(name, values.mean(), MEANINGS[STEP_TIMES])


def _sum_up(whole: str, parts: Sequence[str], spans: dict[str, Matrix], result: Stamped) -> None:
    """Add up a span that is printed in parts; parts that contradict what is printed go."""
    if not parts or any(part not in spans for part in parts):
        return
    added = np.sum([spans[part] for part in parts], axis=0)
    said = spans.setdefault(whole, added).sum()
    if abs(said - added.sum()) > _PARTS_OFF * said:
        words = ", ".join(part.removeprefix(SPAN) for part in parts)
        result.warnings.append(
            f"{words} add up to {added.sum():.4g} s, {whole.removeprefix(SPAN)} to {said:.4g} s: "
            "the parts are left out"
        )
        for part in parts:
            del spans[part]


def _add_epochs(group: _Group, totals: NDArray[np.float64], result: Stamped) -> None:
    """Add the times of epochs, from the begin of the first step to the end of the last, if all
    ranks have printed all steps of several."""
    epochs = group.rows[0].keys[group.places[0], 0]
    begins = np.append(0, np.flatnonzero(np.diff(epochs)) + 1)
    whole = len(epochs) == len(group.rows[0].keys) and not group.lost
    if len(begins) < 2 or not whole or group.between is None:
        return
    between = np.column_stack(group.between)
    between[begins] = 0
    local = np.add.reduceat(np.column_stack(group.seconds) + between, begins)
    result.arrays[EPOCH_TIMES[0]] = local
    result.arrays[EPOCH_TIMES[1]] = np.broadcast_to(local.max(axis=1, keepdims=True), local.shape)
    steps = np.diff(np.append(begins, len(epochs)))
    if (steps == steps[0]).all():
        result.notes["spans"]["steps_per_epoch"] = int(steps[0])
        result.work.pop("samples_per_epoch", None)
        samples = np.add.reduceat(totals, begins) if totals.any() else np.zeros(1)
        if samples[0] and (samples == samples[0]).all():
            result.work["samples_per_epoch"] = round(samples[0])


def _add_facts(rows_of: Sequence[Rows], result: Stamped) -> None:
    """Add memory, hosts and versions, each if all ranks have printed it."""
    for kind, name in MEMORY.items():
        held = [rows.memory.get(kind) for rows in rows_of]
        known = [value for value in held if value is not None]
        if len(known) == len(held):
            result.put(name, sum(known) / len(known), MEANINGS[name])
            result.arrays[name] = np.array(known, np.float64)
        elif known:
            result.warnings.append(f"{name} is not known: rank {held.index(None)} prints none")
    hosts = [rows.host for rows in rows_of if rows.host]
    result.hosts = hosts if len(hosts) == len(rows_of) else []
    result.versions = dict(rows_of[0].versions)
