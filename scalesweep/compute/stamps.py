"""Stamps (docs/reference/stamps.md): the steps that each rank has printed, as checked columns."""

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_lines import MARKER
from scalesweep.compute.log_metrics import UnreadableError, log_files, source_lines
from scalesweep.compute.log_reader import KNOWN
from scalesweep.core.host import cpu_set
from scalesweep.core.record import STEP_TIMES

MEMORY = {
    "allocated": "peak_memory_allocated",
    "reserved": "peak_memory_reserved",
    "rss": "peak_rss",
}
SECONDS, BEGIN, WARM_UP, SPAN = "s", "begin", "warmup", "span_"
AMOUNTS = ("samples", "tokens")
# What they give beside their own spans.
STAMPED = {
    name: KNOWN[name]
    for name in (*(f"{it}_per_second" for it in AMOUNTS), STEP_TIMES, *MEMORY.values())
}
# Of the lines, so many may be damaged, and of the steps so many be lost by that.
LOST = 0.01
# What a line begins with, or is cut after; other text names the marker, as a path or a sentence.
_BEGUN = re.compile(r"\{|[0-9a-f]{8} |[0-9a-f]{1,8}(\[|\s*$)")
_SEALED = re.compile(r"([0-9a-f]{8}) (?=\{)")
# Arrays of epochs, which only the harness makes, and what follows from the begins of steps.
_TAKEN = "busiest|transfer|wait|between"
_NAME = re.compile(rf"(?!(?:{_TAKEN})$)[a-z][a-z0-9_]{{0,39}}")
_MAX = 1e15
_decode = json.JSONDecoder().raw_decode

Key = tuple[int, int]  # epoch (0 if none is said) and number of a step


class Stamp(NamedTuple):
    """What a line says (None: it is damaged), the rank that printed it (None: not known), where it
    stands, and whether it has a checksum."""

    fields: dict[str, Any] | None
    rank: Any
    place: str
    sealed: bool


def stamp_lines(source: str, work: Path, ranks: int, srun_labels: bool) -> Iterator[Stamp]:
    """The lines in ``source`` (stdout, stderr or files in ``work``), in the order of each file.

    The rank is what the line says, else its label, else its file if there are as many files as
    ranks. Raises UnreadableError if no file is there, LogsGoneError, OSError.
    """
    if not log_files(source, work):
        raise UnreadableError(f"stamps: no file '{source}' in {work.name}")
    for name, line in source_lines(source, work, ranks, srun_labels):
        # Another rank may have begun its line within this one.
        for part in line.text.split(MARKER)[1:] if MARKER in line.text else ():
            sealed = _SEALED.match(part)
            fields = _parsed(part, sealed)
            if fields is not None or _BEGUN.match(part):
                rank = 0 if line.rank is None and ranks == 1 else line.rank
                rank = (fields or {}).get("rank", rank)
                yield Stamp(fields, rank, f"line {line.number} of {name}", sealed is not None)


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
    """What a rank has printed: its numbers by step, 1 as ``warmup`` of those that warm up, and
    facts."""

    steps: dict[Key, dict[str, float]] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    host: str | None = None
    versions: dict[str, str | None] = field(default_factory=dict)
    host_clock: bool = False  # of a rank with a GPU, which nothing synchronised

    def add(self, said: dict[str, Any], where: str) -> None:
        """Add what a line says, which stands at ``where``; raises UnreadableError."""
        memory, spans = said.get("memory") or {}, said.get("spans") or {}
        if type(memory) is not dict or not memory.keys() <= MEMORY.keys():
            raise _wrong(where, "memory", memory, f"bytes by {', '.join(MEMORY)}")
        if type(spans) is not dict:
            raise _wrong(where, "spans", spans, "seconds by name")
        for name, value in memory.items():
            self.memory[name] = max(_number(where, name, value), self.memory.get(name, 0))
        self.host = str(said["host"])[:80] if said.get("host") else self.host
        if isinstance(said.get("versions"), dict):
            self.versions = {str(name): str(text) for name, text in said["versions"].items()}
        if "step" not in said:
            return
        self.host_clock |= said.get("clock") == "host"
        epoch, number = (_number(where, n, said.get(n) or 0, int) for n in ("epoch", "step"))
        key = int(epoch), int(number)
        names = (name for name in (SECONDS, BEGIN, *AMOUNTS) if name in said)
        step = {name: _number(where, name, said[name]) for name in names}
        step[WARM_UP] = float(said.get(WARM_UP) is True)
        for name, value in spans.items():
            if not _NAME.fullmatch(name):
                raise _wrong(where, "span", name, f"up to 40 of a-z, 0-9 and _, or {_TAKEN}")
            step[SPAN + name] = _number(where, name, value)
        if self.steps.setdefault(key, step) != step:
            raise UnreadableError(
                f"stamps: {where}: {shown(key)} is printed twice, with different numbers: two "
                "processes have one rank, or two steps one number (print the epoch where they "
                "begin again)"
            )


def shown(key: Key) -> str:
    """``step 7``, ``step 7 of epoch 2``, of an epoch and a step."""
    return f"step {key[1]}" + f" of epoch {key[0]}" * (key[0] > 0)


def _number(where: str, name: str, value: Any, kind: type = float) -> float:
    if type(value) in (int, kind) and 0 <= value < _MAX:
        return value  # type: ignore[no-any-return]
    raise _wrong(where, name, value, f"a {'whole ' * (kind is int)}number of 0 or more")


def _wrong(where: str, name: str, value: Any, needed: str) -> UnreadableError:
    return UnreadableError(f"stamps: {where}: {name} is {ascii(value)[:60]}, not {needed}")


def _rank_of(stamp: Stamp, ranks: int) -> int:
    """The rank that printed a line; raises UnreadableError if it is not known or none of them."""
    if stamp.rank is None:
        raise UnreadableError(
            f"stamps: {stamp.place}: neither the line nor a label names the rank; print "
            '"rank", or let the launcher label lines'
        )
    if type(stamp.rank) is not int or not 0 <= stamp.rank < ranks:
        said, every = str(stamp.rank)[:40], cpu_set(set(range(ranks)))
        raise UnreadableError(f"stamps: {stamp.place} is of rank {said}, the run has {every}")
    return stamp.rank


def read_ranks(
    order: StampsOrder, work: Path, ranks: int, srun_labels: bool
) -> tuple[list[Rank], int, list[str]]:
    """The steps of all ranks of a run, in their order; how many lines there were, and the places of
    those that are cut or mixed with others. Raises UnreadableError naming what is odd, and where.
    """
    by_rank: list[Rank] = [Rank() for _ in range(ranks)]
    damaged: list[str] = []
    lines, all_sealed = 0, True
    for stamp in stamp_lines(order["source"], work, ranks, srun_labels):
        if stamp.fields is None:
            damaged.append(stamp.place)
            continue
        rank = _rank_of(stamp, ranks)
        by_rank[rank].add(stamp.fields, f"{stamp.place} (rank {rank})")
        all_sealed &= stamp.sealed
        lines += 1
    if damaged and not all_sealed:
        raise UnreadableError(
            f"stamps: {damaged[0]} is damaged, and others without a checksum may be two halves: "
            "print the checksum, let the launcher label lines, or give each rank a file"
        )
    if silent := {rank for rank, it in enumerate(by_rank) if not it.steps}:
        others = ", the others did" if len(silent) < ranks else ""
        said = f"rank {cpu_set(silent)} printed no step in {order['source']}{others}"
        raise UnreadableError(f"stamps: {said}")
    return by_rank, lines, damaged
