"""Stamps (docs/reference/stamps.md): the steps that each rank has printed, as checked columns."""

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_lines import MARKER, rank_lines
from scalesweep.compute.log_metrics import UnreadableError, log_files
from scalesweep.compute.stamp_metrics import MEMORY
from scalesweep.core.host import cpu_set

SECONDS, BEGIN, SPAN = "s", "begin", "span_"
AMOUNTS = ("samples", "tokens")
_NUMBERS = (SECONDS, BEGIN, *AMOUNTS)
# Of the lines, so many may be damaged, and of the steps so many be lost by that.
LOST = 0.01
# What a line begins with, or is cut after; other text names the marker, as a path or a sentence.
_BEGUN = re.compile(r"\{|[0-9a-f]{8} |[0-9a-f]{1,8}(\[|\s*$)")
_SEALED = re.compile(r"([0-9a-f]{8}) (?=\{)")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TAKEN = ("busiest", "transfer", "wait")  # arrays of epochs, which only the harness makes
_MAX, _LAST_STEP = 1e15, 2**53
_decode = json.JSONDecoder().raw_decode

Key = tuple[int, int]  # epoch (0 if none is said) and number of a step


class Stamp(NamedTuple):
    """What a line says, the rank that printed it (None: not known), and where it stands."""

    fields: dict[str, Any]
    rank: int | None
    place: str


@dataclass
class Damage:
    """Lines that are not whole, and where the first is; lines without a checksum."""

    lines: int = 0
    first: str = ""
    unsealed: int = 0


def stamp_lines(
    source: str, work: Path, ranks: int, srun_labels: bool, damage: Damage
) -> Iterator[Stamp]:
    """The lines in ``source`` (stdout, stderr or files in ``work``), in the order of each file.

    The rank is what the line says, else its label, else its file if there are as many files as
    ranks. Lines that are cut or mixed with others are counted in ``damage``. Raises UnreadableError
    if no file is there, LogsGoneError, OSError.
    """
    files = log_files(source, work)
    if not files:
        raise UnreadableError(f"stamps: no file '{source}' in {work.name}")
    for index, path in enumerate(files):
        own, name = index if len(files) == ranks else None, str(path.relative_to(work))
        for line in rank_lines(path, ranks, srun_labels):
            # Another rank may have begun its line within this one.
            for part in line.text.split(MARKER)[1:] if MARKER in line.text else ():
                place = f"line {line.number} of {name}"
                sealed = _SEALED.match(part)
                fields = _parsed(part, sealed)
                if fields is not None:
                    damage.unsealed += sealed is None
                    rank = own if line.rank is None else line.rank
                    yield Stamp(fields, fields.get("rank", rank), place)
                elif _BEGUN.match(part):
                    damage.lines += 1
                    damage.first = damage.first or place


def _parsed(text: str, sealed: "re.Match[str] | None") -> dict[str, Any] | None:
    """The object of a stamp; None if it is not whole or differs from its checksum."""
    start = sealed.end() if sealed else 0
    try:
        fields, end = _decode(text, start)
    except (ValueError, RecursionError):
        return None
    if sealed and zlib.crc32(text[start:end].encode(errors="replace")) != int(sealed[1], 16):
        return None
    return fields if type(fields) is dict else None


@dataclass
class Rank:
    """What a rank has printed: its numbers by step, whether a step is marked as warm-up, and
    facts."""

    steps: dict[Key, dict[str, float]] = field(default_factory=dict)
    marked: dict[Key, bool] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    host: str | None = None
    versions: dict[str, str | None] = field(default_factory=dict)
    epochs: bool = True  # whether each line says its epoch
    host_clock: bool = False  # of a rank with a GPU, which nothing synchronised
    twice: int = 0
    spans: set[str] = field(default_factory=set)  # names that were looked at

    def add(self, stamp: Stamp) -> None:
        """Add what a line says; raises UnreadableError."""
        said = stamp.fields
        memory = said.get("memory", {})
        _check(stamp, "memory", memory, type(memory) is dict and set(memory) <= set(MEMORY),
               f"bytes by {', '.join(MEMORY)}")  # fmt: skip
        for name, value in memory.items():
            self.memory[name] = max(_number(stamp, name, value), self.memory.get(name, 0))
        self.host = str(said["host"])[:80] if said.get("host") else self.host
        if isinstance(said.get("versions"), dict):
            self.versions = {str(name): str(text) for name, text in said["versions"].items()}
        if "step" not in said:
            return
        epoch = said.get("epoch")
        self.epochs &= epoch is not None
        key = (epoch or 0, said["step"])
        if not all(type(number) is int and 0 <= number <= _LAST_STEP for number in key):
            for name, number in zip(("epoch", "step"), key, strict=True):
                whole = type(number) is int and 0 <= number <= _LAST_STEP
                _check(stamp, name, number, whole, "a whole number of 0 or more")
        spans = said.get("spans") or {}
        _check(stamp, "spans", spans, type(spans) is dict, "seconds by name")
        step = {name: said[name] for name in _NUMBERS if name in said}
        for name, value in spans.items():
            if name not in self.spans:
                _check_name(stamp, name)
                self.spans.add(name)
            step[SPAN + name] = value
        for name, value in step.items():
            if not (type(value) in (int, float) and 0 <= value < _MAX):
                _number(stamp, name.removeprefix(SPAN), value)
        before = self.steps.setdefault(key, step)
        self.twice += before is not step
        if before != step:
            what = "steps" if self.epochs else "steps (print the epoch where they begin again)"
            raise UnreadableError(
                f"stamps: rank {stamp.rank} printed {shown(key, self.epochs)} twice, with different"
                f" numbers: two processes have one rank, or two {what} one number"
            )
        self.marked[key] = said.get("warmup") is True
        self.host_clock |= said.get("clock") == "host"


def shown(key: Key, epochs: bool) -> str:
    """``step 7``, ``step 7 of epoch 2``, of an epoch and a step."""
    return f"step {key[1]} of epoch {key[0]}" if epochs else f"step {key[1]}"


def _check_name(stamp: Stamp, name: str) -> None:
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise UnreadableError(
            f"stamps: {stamp.place}: span {ascii(name)[:60]}: names are up to 40 "
            f"lower-case letters, digits and '_', and not {', '.join(_TAKEN)}"
        )


def _number(stamp: Stamp, name: str, value: Any) -> float:
    right = type(value) in (int, float) and 0 <= value < _MAX
    _check(stamp, name, value, right, "a number of 0 or more")
    return float(value)


def _check(stamp: Stamp, name: str, value: Any, right: bool, needed: str) -> None:
    """Raise UnreadableError unless a value is right."""
    if not right:
        said = f"{name[:60]} is {ascii(value)[:60]}, not {needed}"
        raise UnreadableError(f"stamps: {stamp.place} (rank {stamp.rank}): {said}")


def read_ranks(
    order: StampsOrder, work: Path, ranks: int, srun_labels: bool
) -> tuple[list[Rank], int, Damage]:
    """The steps of all ranks of a run, in their order; how many lines there were, and which were
    damaged. Raises UnreadableError naming what is missing or odd, and where."""
    damage, by_rank, lines = Damage(), [Rank() for _ in range(ranks)], 0
    for stamp in stamp_lines(order["source"], work, ranks, srun_labels, damage):
        rank = 0 if stamp.rank is None and ranks == 1 else stamp.rank
        if rank is None:
            raise UnreadableError(
                f"stamps: {stamp.place}: neither the line nor a label names the rank; print "
                '"rank", or let the launcher label lines'
            )
        if type(rank) is not int or not 0 <= rank < ranks:
            every = cpu_set(set(range(ranks)))
            raise UnreadableError(
                f"stamps: {stamp.place} is of rank {str(rank)[:40]}, the run has {every}"
            )
        by_rank[rank].add(stamp)
        lines += 1
    _check_damage(damage, lines)
    if silent := {rank for rank, it in enumerate(by_rank) if not it.steps}:
        who = f"rank{'' if len(silent) == 1 else 's'} {cpu_set(silent)}"
        others = ", the others did" if len(silent) < ranks else ""
        raise UnreadableError(f"stamps: {who} printed no step in {order['source']}{others}")
    return by_rank, lines, damage


def _check_damage(damage: Damage, lines: int) -> None:
    if damage.lines and damage.unsealed:
        raise UnreadableError(
            f"stamps: {damage.first} is damaged, and others without a checksum may be two halves: "
            "print the checksum, let the launcher label lines, or give each rank a file"
        )
    if damage.lines > max(1, LOST * lines):
        raise UnreadableError(
            f"stamps: {damage.lines:,} of {lines + damage.lines:,} lines are damaged, the "
            f"first is {damage.first}: ranks write into each other's lines; let the launcher label "
            "lines, or give each rank a file (stamps: 'spans-*.jsonl')"
        )
