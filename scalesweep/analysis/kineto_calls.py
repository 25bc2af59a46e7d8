"""What a record keeps of the collectives of traces: by rank, group and operation, and who is late.

Both lists are JSON, so that an import can note them in its records (``NOTE``), from which the
tables are made later; traces of our own runs are read when the tables are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.kineto_account import RankAccount
from scalesweep.analysis.kineto_lateness import Lateness, Matched, transfer_times
from scalesweep.analysis.kineto_stream import Collective, RankTrace
from scalesweep.analysis.profile import bus_factor
from scalesweep.analysis.types import Floats

NOTE = "collectives"
MAX_ROWS = 4000  # of a recording; 128 ranks of 30 kinds of calls


@dataclass(frozen=True)
class CallRow:
    """Calls of a rank in its windows, which are ``steps`` steps (0: none are known): by group and
    operation. ``members``: the group's ranks in words, None where they are not known.

    ``bytes`` of all calls, None where a size is not known; ``bus_bandwidth`` in bytes/s, over the
    time without waiting where the calls of all ranks of the group are known (``waiting`` is then
    false); seconds count what overlaps once.
    """

    rank: int
    group: str
    members: str | None
    collective: str
    calls: int
    steps: int
    bytes: int | None
    bus_bandwidth: float | None
    waiting: bool
    exposed_s: float
    overlapped_s: float


@dataclass(frozen=True)
class LateRow:
    """How late a rank of a group begins its calls, after the first of them; of the clocks that were
    aligned, its own is ``ahead_s`` ahead of the first rank's. ``latest``: it is late throughout.
    ``step_s``: a step of its trace, None where that shows none."""

    rank: int
    group: str
    members: str | None
    calls: int
    mean_s: float
    median_s: float
    p95_s: float
    last_share: float
    ahead_s: float
    latest: bool
    step_s: float | None


@dataclass(frozen=True)
class CallTables:
    """All rows of a recording; ``left_out``: rows that take the least time."""

    calls: Sequence[CallRow]
    late: Sequence[LateRow]
    left_out: int = 0

    def to_json(self) -> dict[str, Any]:
        """The rows as a mapping that ``from_json`` takes."""
        return {
            "calls": [asdict(row) for row in self.calls],
            "late": [asdict(row) for row in self.late],
            "left_out": self.left_out,
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "CallTables":
        """The rows that ``to_json`` gave; raises KeyError or TypeError of anything else."""
        return CallTables(
            [CallRow(**row) for row in content["calls"]],
            [LateRow(**row) for row in content["late"]],
            content["left_out"],
        )


def call_tables(
    traces: Mapping[int, RankTrace],
    accounts: Mapping[int, RankAccount],
    matched: Sequence[Matched],
    late: Sequence[Lateness],
) -> CallTables:
    """The rows of a recording's ranks."""
    transfer = {each.kind: transfer_times(each.calls) for each in matched}
    rows = []
    for rank, account in accounts.items():
        sizes = _by_operation(traces[rank], transfer)
        for kind, each in account.by_kind.items():
            bus, waiting = sizes[kind]
            rows.append(
                CallRow(
                    rank=rank,
                    group=kind.group,
                    members=number_ranges(kind.members),
                    collective=kind.operation,
                    calls=each.calls,
                    steps=account.steps,
                    bytes=each.size,
                    bus_bandwidth=bus,
                    waiting=waiting,
                    exposed_s=each.exposed_s,
                    overlapped_s=each.overlapped_s,
                )
            )
    rows.sort(key=lambda row: -(row.exposed_s + row.overlapped_s))
    shown = sorted(rows[:MAX_ROWS], key=lambda row: (row.group, row.collective, row.rank))
    return CallTables(shown, _late_rows(late, accounts)[:MAX_ROWS], len(rows) - len(shown))


def _late_rows(late: Sequence[Lateness], accounts: Mapping[int, RankAccount]) -> list[LateRow]:
    def step(rank: int) -> float | None:
        account = accounts.get(rank)
        return account.window_s / account.steps if account and account.steps else None

    return [
        LateRow(
            rank=rank,
            group=each.group,
            members=number_ranges(each.ranks),
            calls=each.calls,
            mean_s=float(each.mean_s[place]),
            median_s=float(each.median_s[place]),
            p95_s=float(each.p95_s[place]),
            last_share=float(each.last_share[place]),
            ahead_s=float(each.ahead_s[place]),
            latest=rank == each.latest,
            step_s=step(rank),
        )
        for each in late
        for place, rank in enumerate(each.ranks)
    ]


def _by_operation(
    trace: RankTrace, transfer: Mapping[Collective, Floats]
) -> dict[Collective, tuple[float | None, bool]]:
    """Bus bandwidth of a rank's calls by kind without their size, and whether waiting is in it."""
    moved: dict[Collective, list[tuple[float | None, float, bool]]] = {}
    for kind, spans in trace.calls.items():
        seconds = transfer.get(kind)
        waits = seconds is None
        if seconds is None:
            table = spans.matrix() * 1e-6
            seconds = table[:, 1] - table[:, 0]
        factor = bus_factor(kind.operation, kind.ranks) if kind.ranks else None
        sent = None if factor is None or kind.size is None else factor * kind.size * len(seconds)
        whole = Collective(kind.operation, kind.group, kind.ranks, None, kind.members)
        moved.setdefault(whole, []).append((sent, float(np.sum(seconds)), waits))
    result = {}
    for kind, every in moved.items():
        total = sum(seconds for _, seconds, _ in every)
        sent_s = [sent for sent, _, _ in every if sent is not None]
        known = len(sent_s) == len(every) and total > 0
        result[kind] = sum(sent_s) / total if known else None, any(w for _, _, w in every)
    return result


def number_ranges(ranks: Sequence[int] | None) -> str | None:
    """Ranks in words: "0-3", "0, 4, 8"; None of none."""
    if not ranks:
        return None
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    words = [f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(map(str, part))
             for part in parts]  # fmt: skip
    return ", ".join(words[:20]) + (", ..." if len(words) > 20 else "")
