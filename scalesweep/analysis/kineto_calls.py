"""What ranks exchanged in PyTorch's traces, and who was late, as rows of tables.

Rows are mappings of plain values, so that an import can note them in its records (``NOTE``); traces
of our own runs are read when the tables are made.
"""

from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.kineto_lateness import lateness_of, matched_calls, number_ranges
from scalesweep.analysis.kineto_stream import RankTrace
from scalesweep.analysis.trace_account import TraceAccount

NOTE = "collectives"
CALLS, LATE = "calls", "late"
MAX_ROWS = 4000  # of a recording; 128 ranks of 30 kinds of calls
_MS = 1e3
Rows = dict[str, list[dict[str, Any]]]


def call_rows(traces: Mapping[int, RankTrace], accounts: Mapping[int, TraceAccount]) -> Rows:
    """Rows of the tables `collectives` (``CALLS``) and `lateness` (``LATE``) of a recording: calls
    of each rank by group and operation, per step where the trace shows steps."""
    rows: list[dict[str, Any]] = [
        {
            "group": kind.group,
            "members": number_ranges(kind.members),
            "collective": kind.operation,
            "rank": rank,
            "steps": account.steps,
            "calls": own.calls / (account.steps or 1),
            "bytes": None if own.size is None else own.size / (account.steps or 1),
            "exposed_ms": own.exposed_s * _MS / (account.steps or 1),
            "overlapped_ms": own.overlapped_s * _MS / (account.steps or 1),
        }
        for rank, account in accounts.items()
        for kind, own in account.by_kind.items()
    ]
    rows.sort(key=lambda row: -(row["exposed_ms"] + row["overlapped_ms"]))
    shown = sorted(rows[:MAX_ROWS], key=lambda r: (r["group"], r["collective"], r["rank"]))
    steps = {
        rank: each.window_s * _MS / each.steps if each.steps else None
        for rank, each in accounts.items()
    }
    return {CALLS: shown, LATE: lateness_of(matched_calls(traces), steps)[:MAX_ROWS]}
