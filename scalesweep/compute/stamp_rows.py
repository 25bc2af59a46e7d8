"""Steps that the ranks of a program have printed, as columns of each rank, checked.

Standard library only: the launcher reads them on compute nodes.
"""

import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_metrics import UnreadableError
from scalesweep.compute.stamp_lines import MAX_LINES, Damage, StampLine, stamp_lines
from scalesweep.core.host import cpu_set

SECONDS, BEGIN = "s", "begin"
AMOUNTS = ("samples", "tokens")
SPAN = "span_"
MEMORY = ("allocated", "reserved", "rss")
MAX_NAMES = 100
_ROLE = re.compile(r"[A-Za-z0-9_.-]{1,40}")  # the end of names of metrics
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# Arrays of epochs, which only the harness makes.
_TAKEN = frozenset(("wait", "busiest", "transfer"))
_PLAIN = (SECONDS, BEGIN, *AMOUNTS)
_NUMBERS = frozenset((int, float))
_MAX = 1e15
_LAST_STEP = 2**53
_NONE = math.nan

Key = tuple[int, int]  # epoch (0 where none is said) and step


@dataclass
class Rows:
    """What a rank has printed: a key for each step, and a number in each column, NaN where the line
    has none."""

    keys: list[Key] = field(default_factory=list)
    columns: dict[str, "array[float]"] = field(default_factory=dict)
    warm: bytearray = field(default_factory=bytearray)
    memory: dict[str, float] = field(default_factory=dict)
    role: str | None = None
    host: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    epochs: bool = True  # whether each line says its epoch
    host_clock: bool = False  # of a rank with a GPU, which nothing synchronised
    twice: int = 0
    # The columns of spans by the names that are printed.
    _spans: dict[str, "array[float]"] = field(default_factory=dict)

    def add(self, stamp: StampLine) -> None:
        """Add what a line says; raises UnreadableError."""
        fields = stamp.fields
        if "role" in fields or "host" in fields or "memory" in fields:
            self._add_facts(stamp)
        if "step" not in fields or "at" in fields:
            return
        step, epoch = fields["step"], fields.get("epoch")
        if epoch is None:
            epoch, self.epochs = 0, False
        for name, value in (("step", step), ("epoch", epoch)):
            if type(value) is not int or not 0 <= value <= _LAST_STEP:
                raise _odd(stamp, name, value, "a whole number of 0 or more")
        count = len(self.keys)
        for name in _PLAIN:
            if name in fields:
                self._put(stamp, name, name, fields[name], count)
        if spans := fields.get("spans"):
            self._put_spans(stamp, spans, count)
        self.keys.append((epoch, step))
        if type(warm := fields.get("warmup", False)) is not bool:
            raise _odd(stamp, "warmup", warm, "true or false")
        self.warm.append(warm)
        if fields.get("clock") == "host":
            self.host_clock = True

    def _put_spans(self, stamp: StampLine, spans: Any, count: int) -> None:
        if type(spans) is not dict:
            raise _odd(stamp, "spans", spans, "seconds by name")
        known = self._spans
        for name, value in spans.items():
            column = known.get(name)
            usual = column is not None and type(value) is float and 0 <= value < _MAX
            if usual and column is not None and len(column) == count:  # 64 ranks print a million
                column.append(value)
            else:
                known[name] = self._put(stamp, name, f"{SPAN}{name}", value, count)

    def _put(
        self, stamp: StampLine, said: str, name: str, value: Any, count: int
    ) -> "array[float]":
        """Add the value of a step to a column, which is padded up to it."""
        if type(value) not in _NUMBERS or not 0 <= value < _MAX:
            kind = "seconds" if name not in AMOUNTS else "a number"
            raise _odd(stamp, said, value, f"{kind} of 0 or more")
        column = self.columns.get(name)
        if column is None:
            _check_name(stamp, name, len(self.columns))
            column = self.columns[name] = array("d")
        column.extend([_NONE] * (count - len(column)))
        column.append(value)
        return column

    def _add_facts(self, stamp: StampLine) -> None:
        fields = stamp.fields
        role, host = fields.get("role", self.role), fields.get("host")
        if role is not None and not (type(role) is str and _ROLE.fullmatch(role)):
            raise _odd(stamp, "role", role, "a word of up to 40 letters, digits and '_.-'")
        if host is not None and not (type(host) is str and _printable(host)):
            raise _odd(stamp, "host", host, "text of 1 to 80 characters")
        if self.role not in (None, role):
            raise UnreadableError(
                f"stamps: {stamp.place}: rank {stamp.rank} is {role!r}, and was {self.role!r}"
            )
        self.role, self.host = role, fields.get("host", self.host)
        versions = fields.get("versions")
        if isinstance(versions, dict):
            known = {str(n)[:80]: v[:80] for n, v in versions.items() if isinstance(v, str)}
            self.versions = dict(list(known.items())[:MAX_NAMES])
        memory = fields.get("memory", {})
        if type(memory) is not dict or not set(memory) <= set(MEMORY):
            raise _odd(stamp, "memory", memory, f"bytes by {', '.join(MEMORY)}")
        for name, value in memory.items():
            if type(value) not in _NUMBERS or not 0 < value < 1e18:
                raise _odd(stamp, f"memory.{name}", value, "bytes above 0")
            self.memory[name] = max(value, self.memory.get(name, 0))

    def complete(self) -> None:
        """Pad all columns and bring the steps into their order; equal ones count once.

        Raises UnreadableError where two steps have one number and different times.
        """
        for column in self.columns.values():
            column.extend([_NONE] * (len(self.keys) - len(column)))
        if all(key < following for key, following in pairwise(self.keys)):
            return
        order = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        kept = order[:1]
        for place in order[1:]:
            if self.keys[place] != self.keys[kept[-1]]:
                kept.append(place)
                continue
            if self._row(place) != self._row(kept[-1]):
                raise UnreadableError(_twice(self.keys[place], self.epochs))
            self.twice += 1
        self.keys = [self.keys[place] for place in kept]
        self.warm = bytearray(self.warm[place] for place in kept)
        for name, column in self.columns.items():
            self.columns[name] = array("d", [column[place] for place in kept])

    def _row(self, place: int) -> list[float | None]:
        values = (column[place] for column in self.columns.values())
        return [None if math.isnan(value) else value for value in values]

    def has(self, name: str) -> bool:
        """Whether each step has a number in a column."""
        column = self.columns.get(name)
        return column is not None and not any(map(math.isnan, column))


@dataclass(frozen=True)
class Printed:
    """The rows of all ranks, by rank, how many lines there were, and which were damaged."""

    rows: Sequence[Rows]
    lines: int
    damage: Damage

    @property
    def roles(self) -> dict[str, set[int]]:
        """Ranks by role; empty where none prints one."""
        roles: dict[str, set[int]] = {}
        for rank, rows in enumerate(self.rows):
            if rows.role is not None:
                roles.setdefault(rows.role, set()).add(rank)
        return roles


def read_rows(order: StampsOrder, work: Path, ranks: int, srun_labels: bool) -> Printed:
    """The steps that all ranks of a run have printed, in their order.

    Raises UnreadableError naming what is missing or odd, and where.
    """
    damage, by_rank, lines = Damage(), {rank: Rows() for rank in range(ranks)}, 0
    for stamp in stamp_lines(order["source"], work, ranks, srun_labels, damage):
        rank = stamp.rank
        if rank is None:
            rank = _only(stamp, ranks)
        rows = by_rank.get(rank)
        if rows is None:
            raise UnreadableError(
                f"stamps: {stamp.place} is of rank {rank}, the run has {cpu_set(set(by_rank))}"
            )
        rows.add(stamp)
        lines += 1
        if lines > MAX_LINES:
            raise UnreadableError(f"stamps: more than {MAX_LINES:,} lines")
    for rank, rows in by_rank.items():
        try:
            rows.complete()
        except UnreadableError as error:
            raise UnreadableError(f"stamps: rank {rank} printed {error}") from None
    where = f"in {order['source']}"
    if silent := {rank for rank, rows in by_rank.items() if not rows.keys}:
        cut = f" ({damage.lines:,} damaged lines, the first is {damage.first})"
        if len(silent) == ranks:
            said = f"no rank printed a step {where}"
        else:
            noun = "rank" if len(silent) == 1 else "ranks"
            said = f"{noun} {cpu_set(silent)} printed no step {where}, the others did"
        raise UnreadableError(f"stamps: {said}{cut if damage.lines else ''}")
    return Printed(list(by_rank.values()), lines, damage)


def follows(key: Key, following: Key) -> bool:
    """Whether a step comes right after another; in a new epoch steps may begin again."""
    (epoch, step), (next_epoch, next_step) = key, following
    if next_epoch == epoch:
        return next_step == step + 1
    return next_epoch == epoch + 1 and next_step in (0, 1, step + 1)


def check_numbering(numbers: Sequence[int], rows: Sequence[Rows], epochs: bool) -> None:
    """Raise UnreadableError where a rank counts its steps from another number than the first of
    these ranks (``numbers``): steps of one number would be different steps."""
    begin, end = rows[0].keys[0], rows[0].keys[-1]
    for rank, of_rank in zip(numbers[1:], rows[1:], strict=True):
        first, last = of_rank.keys[0], of_rank.keys[-1]
        if (first > begin and last > end) or (first < begin and last < end):
            raise UnreadableError(
                f"stamps: rank {numbers[0]} printed {shown(begin, epochs)} to "
                f"{shown(end, epochs)}, rank {rank} {shown(first, epochs)} to "
                f"{shown(last, epochs)}: count steps from the same number on all ranks"
            )


def shown(key: Key, epochs: bool) -> str:
    """``step 7``, ``step 7 of epoch 2``."""
    return f"step {key[1]} of epoch {key[0]}" if epochs else f"step {key[1]}"


def _only(stamp: StampLine, ranks: int) -> int:
    if ranks > 1:
        raise UnreadableError(
            f"stamps: {stamp.place}: neither the line nor a label names the rank; print "
            '"rank", or let the launcher label lines'
        )
    return 0


def _twice(key: Key, epochs: bool) -> str:
    what = "steps" if epochs else "steps (print the epoch where they begin again in each)"
    return (
        f"{shown(key, epochs)} twice, with different numbers: two processes have one rank, or two "
        f"{what} one number"
    )


def _odd(stamp: StampLine, name: str, value: Any, needed: str) -> UnreadableError:
    said = str(value) if type(value) in _NUMBERS else ascii(value)
    said = said if len(said) <= 60 else f"{said[:57]}..."
    return UnreadableError(
        f"stamps: {stamp.place} (rank {stamp.rank}): {name[:60]} is {said}, not {needed}"
    )


def _check_name(stamp: StampLine, name: str, count: int) -> None:
    """Raise UnreadableError for a span whose name cannot be that of an array."""
    bare = name.removeprefix(SPAN)
    if name.startswith(SPAN) and (not _NAME.fullmatch(bare) or bare in _TAKEN):
        raise UnreadableError(
            f"stamps: {stamp.place}: span {ascii(bare)[:60]}: names are up to 40 lower-case "
            f"letters, digits and '_', and not {', '.join(sorted(_TAKEN))}"
        )
    if count >= MAX_NAMES:
        raise UnreadableError(f"stamps: {stamp.place}: more than {MAX_NAMES} spans")


def _printable(text: str) -> bool:
    return 0 < len(text) <= 80 and text.isprintable()
