"""What ranks exchanged in PyTorch's traces, and who was late, as rows of tables.

Rows are mappings of plain values, so that an import can note them in its records (``NOTE``); traces
of our own runs are read when the tables are made.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from scalesweep.analysis.kineto_lateness import (
    lateness_of,
    matched_calls,
    number_ranges,
    transfer_times,
)
from scalesweep.analysis.kineto_stream import Collective, RankTrace
from scalesweep.analysis.profile import bus_factor
from scalesweep.analysis.trace_account import TraceAccount
from scalesweep.analysis.types import Floats

NOTE = "collectives"
CALLS, LATE = "calls", "late"
MAX_ROWS = 4000  # of a recording; 128 ranks of 30 kinds of calls
_MS = 1e3
Rows = dict[str, list[dict[str, Any]]]


def call_rows(traces: Mapping[int, RankTrace], accounts: Mapping[int, TraceAccount]) -> Rows:
    """Rows of the tables `collectives` (``CALLS``) and `lateness` (``LATE``) of a recording."""
    matched = matched_calls(traces)
    transfer = {each.kind: transfer_times(each.calls) for each in matched}
    rows = [
        row for rank in accounts for row in _calls(rank, traces[rank], accounts[rank], transfer)
    ]
    rows.sort(key=lambda row: -(row["exposed_ms"] + row["overlapped_ms"]))
    shown = sorted(rows[:MAX_ROWS], key=lambda r: (r["group"], r["collective"], r["rank"]))
    steps = {
        rank: each.window_s * _MS / each.steps if each.steps else None
        for rank, each in accounts.items()
    }
    return {CALLS: shown, LATE: lateness_of(matched, steps)[:MAX_ROWS]}


def _calls(
    rank: int, trace: RankTrace, account: TraceAccount, transfer: Mapping[Collective, Floats]
) -> list[dict[str, Any]]:
    """Calls of a rank by group and operation, per step where the trace shows steps.

    Bus bandwidth is over the time without waiting where the calls of all ranks of the group are
    known (``waiting`` is then false).
    """
    each = account.steps or 1
    rates = _bus_bandwidths(trace, transfer)
    return [
        {
            "group": kind.group,
            "members": number_ranges(kind.members),
            "collective": kind.operation,
            "rank": rank,
            "steps": account.steps,
            "calls": own.calls / each,
            "bytes": None if own.size is None else own.size / each,
            "bus_bandwidth": rates[kind][0],
            "waiting": None if rates[kind][0] is None else rates[kind][1],
            "exposed_ms": own.exposed_s * _MS / each,
            "overlapped_ms": own.overlapped_s * _MS / each,
        }
        for kind, own in account.by_kind.items()
    ]


def _bus_bandwidths(
    trace: RankTrace, transfer: Mapping[Collective, Floats]
) -> dict[Collective, tuple[float | None, bool]]:
    """Bus bandwidth of a rank's calls by kind without their size, and whether waiting is in it."""
    moved: dict[Collective, list[tuple[float, float, bool]]] = {}
    for kind, spans in trace.calls.items():
        lengths = np.diff(spans.matrix(), axis=1)[:, 0] * 1e-6
        seconds = transfer.get(kind, lengths)
        factor = bus_factor(kind.operation, kind.ranks) if kind.ranks else None
        known = factor is not None and kind.size is not None
        sent = (factor or 0) * (kind.size or 0) * len(seconds) if known else np.nan
        sums = (sent, float(np.sum(seconds)), kind not in transfer)
        moved.setdefault(replace(kind, size=None), []).append(sums)
    rates: dict[Collective, tuple[float | None, bool]] = {}
    for kind, every in moved.items():
        sent, total = (sum(each[place] for each in every) for place in (0, 1))
        rate = sent / total if total > 0 and np.isfinite(sent) else None
        rates[kind] = rate, any(waits for *_, waits in every)
    return rates
