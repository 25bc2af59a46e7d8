"""Arrays and metrics of the steps that the ranks of a program have printed, as a native one's.

Standard library only: the launcher makes them on compute nodes.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_metrics import UnreadableError
from scalesweep.compute.native_format import Meaning, MetricValue
from scalesweep.compute.stamp_activities import ACTIVITIES, BETWEEN, PARTS, move_out
from scalesweep.compute.stamp_rows import (
    AMOUNTS,
    BEGIN,
    MEMORY,
    SECONDS,
    SPAN,
    Key,
    Printed,
    check_numbering,
    follows,
    read_rows,
    shown,
)
from scalesweep.core.files import digest_of
from scalesweep.core.host import cpu_set
from scalesweep.core.npy import Array
from scalesweep.core.record import EPOCH_TIMES, OF_STEPS, STEP_TIMES, WARMUP_STEP_TIMES

# Of the steps, so many may be lost (damaged lines, or lines that a rank has not printed).
LOST = 0.01
# A rank's clock went back by more than this between two steps: it was set.
_SET_S = 1e-3
# Steps may take so much more than the run that they are of: clocks differ.
_LONGER, _LONGER_S = 1.01, 0.1
# By so much of a span its parts may differ from it.
_PARTS_OFF = 0.05
# Spans that each step has; others are activities, which take no time where they are not printed.
IN_EACH = ("span_input", "span_compute", "span_communication")
EACH = frozenset((*IN_EACH, *(part for parts in PARTS.values() for part in parts)))
_RATE = {"samples": "samples/s", "tokens": "tokens/s"}
MEANINGS: dict[str, Meaning] = {
    STEP_TIMES: {"unit": "s", "better": "lower", "scope": "rank"},
    **{
        f"{name}_per_second": {"unit": unit, "better": "higher", "scope": "total"}
        for name, unit in _RATE.items()
    },
    **{
        "peak_rss" if name == "rss" else f"peak_memory_{name}":
        {"unit": "bytes", "better": "lower", "scope": "rank"}
        for name in MEMORY
    },
}  # fmt: skip

# Raised when the same lines would give other numbers: logs are read again.
_READER = 3


def digest_of_stamps(order: StampsOrder, metrics: str) -> str:
    """What the metrics of a record were read with, where there are stamps beside the ``metrics``
    of this digest."""
    return digest_of([_READER, dict(order), metrics], 8)


@dataclass
class Stamped:
    """What the stamps of a run give: parts of its record, and arrays for samples.npz."""

    metrics: dict[str, MetricValue] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    versions: dict[str, str | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def put(self, name: str, value: float, meaning: Meaning) -> None:
        """Add a metric."""
        self.metrics[name] = {"value": value, **meaning}


def read_stamps(
    order: StampsOrder, work: Path, ranks: int, srun_labels: bool, wall_s: float | None = None
) -> Stamped:
    """What the stamps of a run with so many ranks give; ``work``: the folder of its attempt,
    ``wall_s``: seconds that the program ran, where they are known.

    Raises UnreadableError where a number would be wrong, LogsGoneError, OSError.
    """
    printed = read_rows(order, work, ranks, srun_labels)
    for rows in printed.rows:
        move_out(rows)
    result = Stamped()
    _note_faults(printed, result)
    roles = printed.roles
    meet = order["meet"] == "all" or (order["meet"] is None and len(roles) < 2)
    about: dict[str, Any] = {"lines": printed.lines, "damaged": printed.damage.lines}
    if roles:
        about["roles"] = {role: cpu_set(numbers) for role, numbers in sorted(roles.items())}
    result.notes["stamps"] = about
    if not meet:
        result.notes["mode"] = {"synchronous": False}
    if len(roles) > 1 and order["meet"] is None:
        result.warnings.append(
            f"ranks have {len(roles)} roles ({', '.join(sorted(roles))}): their steps are not "
            "compared; say 'meet: all' in benchmark.yaml if all ranks meet in each step, else "
            f"'meet: none' and a main_metric, such as samples_per_second_{min(roles)}"
        )
    apart = len(roles) > 1 and not meet
    if apart and sum(map(len, roles.values())) < ranks:
        raise UnreadableError("stamps: some ranks print a role and others do not")
    groups: Iterable[tuple[str, list[int]]] = (
        [(f"_{role}", sorted(numbers)) for role, numbers in sorted(roles.items())]
        if apart
        else [("", list(range(ranks)))]
    )
    for suffix, numbers in groups:
        group = _Group(printed, numbers, meet, wall_s)
        _add_group(group, suffix, order["warmup"], result)
    _add_facts(printed, result)
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


class _Group:
    """Ranks that are looked at together, and of each the seconds of the steps that count.

    ``seconds`` and ``between`` (None where it is not known) are by rank, with a place for each of
    ``places``: the rank's rows of these steps. ``keys`` are those of the first rank.
    """

    def __init__(
        self, printed: Printed, numbers: Sequence[int], meet: bool, wall_s: float | None
    ) -> None:
        self.numbers, self.meet, self.wall_s = numbers, meet, wall_s
        self.rows = [printed.rows[rank] for rank in numbers]
        self.epochs = all(rows.epochs for rows in self.rows)
        if not self.epochs and any(epoch for rows in self.rows for epoch, _ in rows.keys):
            raise UnreadableError("stamps: some lines say their epoch and others do not")
        self.alike = all(rows.keys == self.rows[0].keys for rows in self.rows)
        self.places = [list(range(len(rows.keys))) for rows in self.rows]
        self.said: list[str] = []
        self.lost = 0
        self.clock_set = False  # so that this run's rate is not of the same time as another's
        if meet and not self.alike:
            self._keep_shared()
        self.seconds = self._seconds()
        self._check_seconds()
        self.between = self._between() if self.has(SECONDS) else None
        if not self.seconds[0]:
            raise UnreadableError("stamps: no step is known whole: print 's', its seconds")

    @property
    def keys(self) -> list[Key]:
        """The steps that count, of the first rank."""
        return [self.rows[0].keys[place] for place in self.places[0]]

    def has(self, name: str) -> bool:
        """Whether every line has a number in a column."""
        return all(rows.has(name) for rows in self.rows)

    def lacking(self, name: str, warm_up: int | None = None) -> str:
        """Where the first number of a column is missing; empty if nowhere, or everywhere.

        ``warm_up``: look only at the steps that count and follow these.
        """
        if not any(name in rows.columns for rows in self.rows):
            return ""
        for rank, rows, places in zip(self.numbers, self.rows, self.places, strict=True):
            column = rows.columns.get(name)
            if column is None:
                return f"rank {rank} prints none"
            wanted = range(len(column)) if warm_up is None else places[warm_up:]
            for place in wanted:
                if math.isnan(column[place]):
                    return f"{shown(rows.keys[place], self.epochs)} of rank {rank} has none"
        return ""

    def column(self, name: str, absent: float = math.nan) -> list[list[float]]:
        """A column by rank, of the steps that count; ``absent``: where there is no number."""
        result = []
        for rows, places in zip(self.rows, self.places, strict=True):
            known = rows.columns.get(name)
            values = [absent if known is None else known[place] for place in places]
            result.append([absent if math.isnan(value) else value for value in values])
        return result

    def _keep_shared(self) -> None:
        """Leave out the steps that some ranks lack; raises UnreadableError for more than a few."""
        check_numbering(self.numbers, self.rows, self.epochs)
        sets = [set(rows.keys) for rows in self.rows]
        union, shared = set().union(*sets), set.intersection(*sets)
        self.lost = len(union) - len(shared)
        fewest = min(range(len(sets)), key=lambda place: len(sets[place]))
        lacks = min(union - sets[fewest])
        if self.lost > max(1, LOST * len(union)):
            raise UnreadableError(
                f"stamps: rank {self.numbers[fewest]} printed {len(sets[fewest]):,} of "
                f"{len(union):,} steps, the first that it lacks is {shown(lacks, self.epochs)}; "
                "say 'meet: none' if ranks do not meet in each step"
            )
        self.said.append(
            f"{self.lost:,} of {len(union):,} steps are left out, because not every rank has "
            f"printed them (the first is {shown(min(union - shared), self.epochs)})"
        )
        for place, rows in enumerate(self.rows):
            self.places[place] = [i for i, key in enumerate(rows.keys) if key in shared]

    def _seconds(self) -> list[list[float]]:
        if self.has(SECONDS):
            return self.column(SECONDS)
        if lacking := self.lacking(SECONDS):
            raise UnreadableError(f"stamps: some lines have 's', the seconds of a step: {lacking}")
        if not self.has(BEGIN):
            raise UnreadableError(
                "stamps: lines need 's', the seconds of a step, or 'begin', when it began"
            )
        return self._from_one_to_the_next()

    def _too_long(self, total: float) -> bool:
        """Whether the run did not take so long."""
        return self.wall_s is not None and total > _LONGER * self.wall_s + _LONGER_S

    def _check_seconds(self) -> None:
        """Raise UnreadableError where the steps of a rank take longer than the run."""
        for rank, seconds in zip(self.numbers, self.seconds, strict=True):
            if self._too_long(total := math.fsum(seconds)):
                needed = (
                    "print seconds, of steps that follow each other"
                    if self.has(SECONDS)
                    else "take a clock that is never set, in seconds"
                )
                raise UnreadableError(
                    f"stamps: the steps of rank {rank} add up to {total:.4g} s, and the run took "
                    f"{self.wall_s:.4g} s: {needed}"
                )

    def _from_one_to_the_next(self) -> list[list[float]]:
        """Seconds from the begin of a step to that of the next, of those whose next is known."""
        every: list[dict[int, float]] = []
        for rank, rows in zip(self.numbers, self.rows, strict=True):
            begins = rows.columns[BEGIN]
            known = {
                place: begins[place + 1] - begins[place]
                for place in range(len(rows.keys) - 1)
                if follows(rows.keys[place], rows.keys[place + 1])
            }
            for place, seconds in known.items():
                if seconds < 0:
                    raise UnreadableError(
                        f"stamps: the clock of rank {rank} went back by {-seconds:.3g} s after "
                        f"{shown(rows.keys[place], self.epochs)}; take a clock that is never set"
                    )
            every.append(known)
        self._keep(every)
        return [
            [known[place] for place in places]
            for known, places in zip(every, self.places, strict=True)
        ]

    def _keep(self, every: Sequence[Any]) -> None:
        """Count only the steps of which each rank knows something; ``every``: places by rank."""
        if not self.meet:
            self.places = [
                [place for place in places if place in known]
                for places, known in zip(self.places, every, strict=True)
            ]
            return
        there = [
            all(places[i] in known for places, known in zip(self.places, every, strict=True))
            for i in range(len(self.places[0]))
        ]
        self.places = [
            [place for place, is_there in zip(places, there, strict=True) if is_there]
            for places in self.places
        ]

    def _between(self) -> list[list[float]] | None:
        """Seconds from the end of the step before; None where they are not known of all steps.

        The first step of all has none before it. A step that follows one that is lost is left out.
        """
        if self.has(BETWEEN):
            columns = [dict(enumerate(rows.columns[BETWEEN])) for rows in self.rows]
            return None if self._reach_too_far(columns) else self.column(BETWEEN)
        if not self.has(BEGIN):
            self.said.append(
                "the time between steps is not known (lines have no 'begin'): rates are of the "
                "time within steps"
            )
            return None
        every: list[dict[int, float]] = []
        for rank, rows in zip(self.numbers, self.rows, strict=True):
            begins, seconds = rows.columns[BEGIN], rows.columns[SECONDS]
            known = {0: 0.0}
            for place in range(1, len(rows.keys)):
                if not follows(rows.keys[place - 1], rows.keys[place]):
                    continue
                passed = begins[place] - begins[place - 1] - seconds[place - 1]
                if passed < -_SET_S:
                    self.said.append(
                        f"the clock of rank {rank} went back by {-passed:.3g} s before "
                        f"{shown(rows.keys[place], self.epochs)}, or steps overlap: the time "
                        "between steps is not known, nor are rates"
                    )
                    self.clock_set = True
                    return None
                known[place] = max(passed, 0.0)
            every.append(known)
        if self._reach_too_far(every):
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
        if left_out:
            self.seconds = self.column(SECONDS)
        return [
            [known[place] for place in places]
            for known, places in zip(every, self.places, strict=True)
        ]

    def _reach_too_far(self, every: Sequence[dict[int, float]]) -> bool:
        """Whether the steps of a rank and the seconds between them (``every``, by place) take
        longer than the run, which a warning says."""
        for rank, rows, known in zip(self.numbers, self.rows, every, strict=True):
            total = math.fsum((*rows.columns[SECONDS], *known.values()))
            if self._too_long(total):
                longest = max(known, key=known.__getitem__)
                self.said.append(
                    f"the steps of rank {rank} reach over more time than the run took "
                    f"({known[longest]:.2g} s lie before "
                    f"{shown(rows.keys[longest], self.epochs)}): its clock was set or does not "
                    "count seconds; the time between steps is not known, nor are rates"
                )
                self.clock_set = True
                return True
        return False

    def warm_up(self, declared: int) -> int:
        """How many of the steps that count are warm-up: declared, or marked by the program."""
        longest = declared
        for rank, rows, places in zip(self.numbers, self.rows, self.places, strict=True):
            marked = [bool(rows.warm[place]) for place in places]
            count = marked.index(False) if False in marked else len(marked)
            if any(marked[count:]):
                late = shown(rows.keys[places[count + marked[count:].index(True)]], self.epochs)
                raise UnreadableError(
                    f"stamps: {late} of rank {rank} is marked as warm-up, earlier ones are not"
                )
            longest = max(longest, count)
        if longest >= (fewest := min(map(len, self.places))):
            raise UnreadableError(f"stamps: a warm-up of {longest} leaves none of {fewest} steps")
        return longest


def _add_group(group: _Group, suffix: str, declared: int, result: Stamped) -> None:
    """Add what a group of ranks gives; names end with ``suffix``."""
    meet = group.meet
    warm_up = group.warm_up(declared)
    result.warnings += group.said
    timed = [seconds[warm_up:] for seconds in group.seconds]
    means = [math.fsum(seconds) / len(seconds) for seconds in timed]
    seconds_of = MEANINGS[STEP_TIMES]
    name = f"step_time{suffix}" if suffix else STEP_TIMES
    result.put(name, math.fsum(means) / len(means), seconds_of)
    elapsed = [
        math.fsum(seconds) + math.fsum(() if group.between is None else group.between[r][warm_up:])
        for r, seconds in enumerate(timed)
    ]
    totals = _add_rates(group, suffix, warm_up, max(elapsed), result)
    if not meet:
        _add_means(group, suffix, warm_up, result)
    if suffix:
        return
    about = result.notes["stamps"]
    about |= {"steps": min(map(len, timed)), "warmup": warm_up}
    spans = result.notes["spans"] = {"method": "printed by the program"}
    if not group.alike and not meet:
        result.warnings.append("ranks printed different steps: only means are kept of them")
        return
    spans["steps_per_epoch"] = len(timed[0])
    if sum(totals):
        result.work["samples_per_epoch"] = round(math.fsum(totals[warm_up:]))
        if len(set(totals[warm_up:])) == 1:
            result.notes["batch"] = {"global": totals[warm_up]}
    _keep(result, STEP_TIMES, timed)
    if warm_up:
        _keep(result, WARMUP_STEP_TIMES, [seconds[:warm_up] for seconds in group.seconds])
    if not meet:
        return  # an account of steps takes all ranks to wait for each other
    if group.between is not None:
        _keep(result, BETWEEN, [between[warm_up:] for between in group.between])
    _add_spans(group, warm_up, result)
    if group.epochs:
        _add_epochs(group, totals, result)


def _add_rates(
    group: _Group, suffix: str, warm_up: int, elapsed: float, result: Stamped
) -> list[float]:
    """Add samples and tokens per second of all ranks; samples by step, where ranks share steps."""
    totals: list[float] = []
    for name in AMOUNTS:
        if lacking := group.lacking(name):
            result.warnings.append(f"{name}_per_second is not known: {lacking} ({name})")
        if not group.has(name):
            continue
        columns = group.column(name)
        amount = math.fsum(math.fsum(column[warm_up:]) for column in columns)
        if name == "samples" and len(set(map(len, columns))) == 1:
            totals = [math.fsum(values) for values in zip(*columns, strict=True)]
        if amount > 0 and elapsed > 0 and not group.clock_set:
            rate = f"{name}_per_second"
            result.put(f"{rate}{suffix}", amount / elapsed, MEANINGS[rate])
    return totals


def _span_names(group: _Group, result: Stamped) -> list[str]:
    """The spans that any rank prints; none, with a warning, where no clock has seen them end."""
    for rank, rows in zip(group.numbers, group.rows, strict=True):
        if rows.host_clock:
            result.warnings.append(
                f"rank {rank} computes on a GPU and stamps without 'synchronize': the host's clock "
                "sees when kernels are enqueued, so its spans are left out"
            )
            return []
    return sorted({name for rows in group.rows for name in rows.columns if name.startswith(SPAN)})


def _lacks(group: _Group, name: str, warm_up: int, result: Stamped) -> bool:
    """Whether a span that each step has is missing in one that counts, which a warning says."""
    lacking = group.lacking(name, warm_up) if name in EACH else ""
    if lacking:
        result.warnings.append(
            f"span {name.removeprefix(SPAN)} is left out: {lacking}; print 0 where it takes no time"
        )
    return bool(lacking)


def _placeless(group: _Group, name: str, result: Stamped) -> bool:
    """Whether an activity may be part of a step or not, which a warning says."""
    if name not in ACTIVITIES or group.has(SECONDS):
        return False
    result.warnings.append(
        f"span {name.removeprefix(SPAN)} is left out: steps that only say when they begin last "
        "until the next one begins, with what lies between; print 's'"
    )
    return True


def _add_means(group: _Group, suffix: str, warm_up: int, result: Stamped) -> None:
    """Add what each span takes in a step, of ranks that do not meet."""
    for name in _span_names(group, result):
        if _lacks(group, name, warm_up, result):
            continue
        columns = [column[warm_up:] for column in group.column(name, 0.0)]
        means = [math.fsum(column) / len(column) for column in columns]
        result.put(f"{name}{suffix}", math.fsum(means) / len(means), MEANINGS[STEP_TIMES])


def _add_spans(group: _Group, warm_up: int, result: Stamped) -> None:
    """Keep the spans of steps; what a program's own spans take becomes a metric of each."""
    names = _span_names(group, result)
    kept: dict[str, list[list[float]]] = {}
    for name in names:
        if name == BETWEEN:
            continue
        if _lacks(group, name, warm_up, result) or _placeless(group, name, result):
            continue
        kept[name] = [column[warm_up:] for column in group.column(name, 0.0)]
    for whole, parts in PARTS.items():
        _sum_up(group, whole, [part for part in parts if part in names], kept, result)
    if names and "span_communication" not in names and len(group.numbers) == 1:
        kept["span_communication"] = [[0.0] * len(group.seconds[0][warm_up:])]  # with nobody
    for name, columns in kept.items():
        if name in OF_STEPS:
            _keep(result, name, columns)
        else:
            mean = math.fsum(map(math.fsum, columns)) / sum(map(len, columns))
            result.put(name, mean, MEANINGS[STEP_TIMES])


def _sum_up(
    group: _Group,
    whole: str,
    parts: Sequence[str],
    kept: dict[str, list[list[float]]],
    result: Stamped,
) -> None:
    """Add up a span that is printed in parts; parts that contradict what is printed go."""
    if not parts or any(part not in kept for part in parts):
        return
    sums = [
        [math.fsum(values) for values in zip(*(kept[part][rank] for part in parts), strict=True)]
        for rank in range(len(group.numbers))
    ]
    if whole not in kept:
        kept[whole] = sums
        return
    said, added = (math.fsum(map(math.fsum, columns)) for columns in (kept[whole], sums))
    if abs(said - added) > _PARTS_OFF * said:
        words = ", ".join(part.removeprefix(SPAN) for part in parts)
        result.warnings.append(
            f"{words} add up to {added:.4g} s, {whole.removeprefix(SPAN)} to {said:.4g} s: the "
            "parts are left out"
        )
        for part in parts:
            del kept[part]


def _add_epochs(group: _Group, totals: Sequence[float], result: Stamped) -> None:
    """Add the times of epochs, from the begin of the first step to the end of the last, where all
    ranks have printed all steps of several."""
    keys = group.keys
    begins = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(keys)) if a[0] != b[0])]
    if len(begins) < 2 or group.lost or group.between is None:
        return
    if len(keys) != len(group.rows[0].keys):
        return
    bounds = list(pairwise([*begins, len(keys)]))
    local = [
        [
            math.fsum(seconds[first:last]) + math.fsum(between[first + 1 : last])
            for first, last in bounds
        ]
        for seconds, between in zip(group.seconds, group.between, strict=True)
    ]
    longest = [max(times) for times in zip(*local, strict=True)]
    _keep(result, EPOCH_TIMES[0], local)
    _keep(result, EPOCH_TIMES[1], [longest] * len(local))
    steps = {last - first for first, last in bounds}
    samples = {math.fsum(totals[first:last]) for first, last in bounds} if totals else set()
    if len(steps) == 1:
        result.notes["spans"]["steps_per_epoch"] = steps.pop()
        result.work.pop("samples_per_epoch", None)
        if len(samples) == 1 and (count := samples.pop()):
            result.work["samples_per_epoch"] = round(count)


def _keep(result: Stamped, name: str, columns: Sequence[Sequence[float]]) -> None:
    """Keep seconds by rank as an array ``[step, rank]``."""
    values = [value for row in zip(*columns, strict=True) for value in row]
    result.arrays[name] = Array((len(columns[0]), len(columns)), values)


def _add_facts(printed: Printed, result: Stamped) -> None:
    """Add memory, hosts and versions, each where all ranks have printed it."""
    rows_of = printed.rows
    for kind in MEMORY:
        held = [rows.memory[kind] for rows in rows_of if kind in rows.memory]
        name = "peak_rss" if kind == "rss" else f"peak_memory_{kind}"
        if len(held) == len(rows_of):
            result.put(name, math.fsum(held) / len(held), MEANINGS[name])
            result.arrays[name] = Array((len(held),), held)
        elif held:
            lacks = next(r for r, rows in enumerate(rows_of) if kind not in rows.memory)
            result.warnings.append(f"{name} is not known: rank {lacks} prints none")
    hosts = [rows.host for rows in rows_of if rows.host]
    result.hosts = hosts if len(hosts) == len(rows_of) else []
    result.versions = dict(rows_of[0].versions)
