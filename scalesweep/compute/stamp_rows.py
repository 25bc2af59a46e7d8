"""Steps that the ranks of a program have printed, as columns of each rank, checked."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_metrics import UnreadableError
from scalesweep.compute.stamp_lines import Damage, StampLine, stamp_lines
from scalesweep.compute.stamp_metrics import MEMORY
from scalesweep.core.host import cpu_set

SECONDS, BEGIN = "s", "begin"
AMOUNTS = ("samples", "tokens")
SPAN = "span_"
_ROLE = re.compile(r"[A-Za-z0-9_.-]{1,40}")  # the end of names of metrics
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# Arrays of epochs, which only the harness makes.
_TAKEN = ("busiest", "transfer", "wait")
_MAX, _LAST_STEP = 1e15, 2**53

Column = NDArray[np.float64]


@dataclass
class Rows:
    """What a rank has printed, in the order of its steps.

    ``keys``: epoch (0 if none is said) and number of each step, ``[step, 2]``. ``columns``: a
    number for each step, NaN if its line has none. ``warm``: whether a step is marked as warm-up.
    ``twice``: steps that were printed twice, alike.
    """

    keys: NDArray[np.int64]
    columns: dict[str, Column]
    warm: NDArray[np.bool_]
    memory: dict[str, float]
    role: str | None
    host: str | None
    versions: dict[str, str]
    epochs: bool  # whether each line says its epoch
    host_clock: bool  # of a rank with a GPU, which nothing synchronised
    twice: int = 0

    def has(self, name: str) -> bool:
        """Whether each step has a number in a column."""
        return name in self.columns and not np.isnan(self.columns[name]).any()

    def known(self, name: str) -> Column:
        """A column, 0 if there is no number."""
        if name not in self.columns:
            return np.zeros(len(self.keys))
        return np.nan_to_num(self.columns[name])

    def follows(self) -> NDArray[np.bool_]:
        """Whether each step but the first comes right after the one before; in a new epoch steps
        may begin again at 0 or 1."""
        epochs, steps = np.diff(self.keys, axis=0).T
        again = np.isin(self.keys[1:, 1], (0, 1))
        follows = ((epochs == 0) & (steps == 1)) | ((epochs == 1) & (again | (steps == 1)))
        return np.asarray(follows, bool)

    def shown(self, place: int) -> str:
        """``step 7``, ``step 7 of epoch 2``."""
        return shown(self.keys[place], self.epochs)


@dataclass
class _Printing:
    """The lines of a rank while they are read."""

    keys: list[tuple[int, int]] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    warm: list[bool] = field(default_factory=list)
    memory: dict[str, float] = field(default_factory=dict)
    role: str | None = None
    host: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    epochs: bool = True
    host_clock: bool = False

    def add(self, stamp: StampLine) -> None:
        """Add what a line says; raises UnreadableError."""
        fields = stamp.fields
        if not fields.keys().isdisjoint(("role", "host", "memory")):
            self._add_facts(stamp)
        if "step" not in fields:
            return
        self.epochs &= fields.get("epoch") is not None
        epoch, step = fields.get("epoch") or 0, fields["step"]
        for name, value in (("step", step), ("epoch", epoch)):
            _check(stamp, name, value, type(value) is int and 0 <= value <= _LAST_STEP,
                   "a whole number of 0 or more")  # fmt: skip
        spans, warm = fields.get("spans") or {}, fields.get("warmup", False)
        _check(stamp, "spans", spans, type(spans) is dict, "seconds by name")
        _check(stamp, "warmup", warm, type(warm) is bool, "true or false")
        for name in (SECONDS, BEGIN, *AMOUNTS):
            if name in fields:
                self._put(stamp, name, name, fields[name])
        for name, value in spans.items():
            self._put(stamp, name, f"{SPAN}{name}", value)
        self.keys.append((epoch, step))
        self.warm.append(warm)
        self.host_clock |= fields.get("clock") == "host"

    def _put(self, stamp: StampLine, said: str, name: str, value: Any) -> None:
        kind = "a number" if name in AMOUNTS else "seconds"
        _check(stamp, said, value, _is_number(value) and 0 <= value < _MAX, f"{kind} of 0 or more")
        if name not in self.columns:
            if name.startswith(SPAN) and (not _NAME.fullmatch(said) or said in _TAKEN):
                raise UnreadableError(
                    f"stamps: {stamp.place}: span {ascii(said)[:60]}: names are up to 40 "
                    f"lower-case letters, digits and '_', and not {', '.join(_TAKEN)}"
                )
            self.columns[name] = []
        column = self.columns[name]
        column.extend([np.nan] * (len(self.keys) - len(column)))
        column.append(value)

    def _add_facts(self, stamp: StampLine) -> None:
        fields = stamp.fields
        role, host = fields.get("role", self.role), fields.get("host", self.host)
        memory, versions = fields.get("memory", {}), fields.get("versions")
        _check(stamp, "role", role, role is None or _matches(_ROLE, role),
               "a word of up to 40 letters, digits and '_.-'")  # fmt: skip
        _check(stamp, "host", host, host is None or (type(host) is str and host.isprintable()),
               "text of 1 to 80 characters")  # fmt: skip
        _check(stamp, "memory", memory, type(memory) is dict and set(memory) <= set(MEMORY),
               f"bytes by {', '.join(MEMORY)}")  # fmt: skip
        if self.role not in (None, role):
            raise UnreadableError(
                f"stamps: {stamp.place}: rank {stamp.rank} is {role!r}, and was {self.role!r}"
            )
        self.role, self.host = role, host
        if isinstance(versions, dict):
            self.versions = {str(name): str(text) for name, text in versions.items()}
        for name, value in memory.items():
            _check(stamp, f"memory.{name}", value, _is_number(value) and value > 0, "bytes above 0")
            self.memory[name] = max(value, self.memory.get(name, 0))

    def rows(self) -> Rows:
        """All steps in their order, equal ones once.

        Raises UnreadableError if two steps have one number and different times.
        """
        count = len(self.keys)
        keys = np.array(self.keys, np.int64).reshape(count, 2)
        columns = {
            name: np.array(column + [np.nan] * (count - len(column)))
            for name, column in self.columns.items()
        }
        order = np.lexsort(keys.T[::-1])
        keys = keys[order]
        again = np.append(False, (keys[1:] == keys[:-1]).all(axis=1))[:count]
        columns = {name: column[order] for name, column in columns.items()}
        for column in columns.values():
            unlike = ~np.isclose(column[1:], column[:-1], rtol=0, atol=0, equal_nan=True)
            if count and (odd := np.flatnonzero(again[1:] & unlike)).size:
                raise UnreadableError(_twice(keys[odd[0]], self.epochs))
        return Rows(
            keys[~again],
            {name: column[~again] for name, column in columns.items()},
            np.array(self.warm, bool)[order][~again],
            self.memory, self.role, self.host, self.versions, self.epochs, self.host_clock,
            int(again.sum()),
        )  # fmt: skip


@dataclass(frozen=True)
class Printed:
    """The rows of all ranks, by rank, how many lines there were, and which were damaged."""

    rows: list[Rows]
    lines: int
    damage: Damage

    @property
    def roles(self) -> dict[str, list[int]]:
        """Ranks by role, in the order of their names; empty if none prints one."""
        roles: dict[str, list[int]] = {}
        for rank, rows in enumerate(self.rows):
            if rows.role is not None:
                roles.setdefault(rows.role, []).append(rank)
        return dict(sorted(roles.items()))


def read_rows(order: StampsOrder, work: Path, ranks: int, srun_labels: bool) -> Printed:
    """The steps that all ranks of a run have printed, in their order.

    Raises UnreadableError naming what is missing or odd, and where.
    """
    damage, printing, lines = Damage(), [_Printing() for _ in range(ranks)], 0
    for stamp in stamp_lines(order["source"], work, ranks, srun_labels, damage):
        rank = 0 if stamp.rank is None and ranks == 1 else stamp.rank
        if rank is None:
            raise UnreadableError(
                f"stamps: {stamp.place}: neither the line nor a label names the rank; print "
                '"rank", or let the launcher label lines'
            )
        if not 0 <= rank < ranks:
            raise UnreadableError(
                f"stamps: {stamp.place} is of rank {rank}, the run has {cpu_set(set(range(ranks)))}"
            )
        printing[rank].add(stamp)
        lines += 1
    by_rank = []
    for rank, of_rank in enumerate(printing):
        try:
            by_rank.append(of_rank.rows())
        except UnreadableError as error:
            raise UnreadableError(f"stamps: rank {rank} printed {error}") from None
    if silent := [rank for rank, rows in enumerate(by_rank) if not len(rows.keys)]:
        noun = "rank" if len(silent) == 1 else "ranks"
        said = f"{noun} {cpu_set(set(silent))} printed no step in {order['source']}, the others did"
        if len(silent) == ranks:
            said = f"no rank printed a step in {order['source']}"
        cut = f" ({damage.lines:,} damaged lines, the first is {damage.first})"
        raise UnreadableError(f"stamps: {said}{cut if damage.lines else ''}")
    return Printed(by_rank, lines, damage)


def shown(key: Any, epochs: bool) -> str:
    """``step 7``, ``step 7 of epoch 2``, of an epoch and a step."""
    return f"step {key[1]} of epoch {key[0]}" if epochs else f"step {key[1]}"


def _twice(key: Any, epochs: bool) -> str:
    what = "steps" if epochs else "steps (print the epoch where they begin again in each)"
    return (
        f"{shown(key, epochs)} twice, with different numbers: two processes have one rank, or two "
        f"{what} one number"
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _matches(pattern: "re.Pattern[str]", value: Any) -> bool:
    return type(value) is str and pattern.fullmatch(value) is not None


def _check(stamp: StampLine, name: str, value: Any, right: bool, needed: str) -> None:
    """Raise UnreadableError unless a value is right."""
    if not right:
        said = str(value) if _is_number(value) else ascii(value)
        said = said if len(said) <= 60 else f"{said[:57]}..."
        raise UnreadableError(
            f"stamps: {stamp.place} (rank {stamp.rank}): {name[:60]} is {said}, not {needed}"
        )
