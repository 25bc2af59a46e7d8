"""Traces of PyTorch's profiler (Kineto), one for each rank (``analysis.trace_account``).

What ranks exchanged and who was late are rows of tables, plain values, which an import notes in its
records (``NOTE``); traces of our own runs are read when the tables are made.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.kineto_lateness import Matched, lateness_of, matched_calls
from scalesweep.analysis.kineto_stream import Collective, NoTraceError, RankTrace, read_stream
from scalesweep.analysis.profile import Message, Profile, RankTimes
from scalesweep.analysis.trace_account import TraceAccount, account_of_rank
from scalesweep.compute.log_lines import open_packed
from scalesweep.importers.imported_run import Refusal, metric

MAX_SIZES = 200
# Of a rewritten trace, which may begin with anything: names of kinds that only Kineto has.
_SIGNS = (
    '"schemaVersion"', '"distributedInfo"', '"cpu_op"', '"python_function"', '"cuda_runtime"',
    '"Trace iteration"', '"ProfilerStep#', '"cat": "Kernel"',
)  # fmt: skip


def sign(head: str) -> bool:
    """Whether a file begins as a trace of Kineto's does."""
    begins = head.lstrip().startswith("{") and '"traceEvents"' in head
    return begins and any(sign in head for sign in _SIGNS)


def read(files: Sequence[Path], ranks: int | None = None) -> Iterator[Profile | Refusal]:
    """A profile of the traces of a folder: the ranks of a recording are one; ``ranks`` if traces do
    not tell the number of them."""
    recordings: list[dict[int, tuple[Path, RankTrace]]] = []
    for file in files:
        try:
            with open_packed(file) as stream:
                trace = read_stream(stream)
        except (NoTraceError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            yield Refusal(file, reason or "cannot be read")
            continue
        if trace.unseen and not trace.on_gpu:
            yield Refusal(file, trace.unseen)
            continue
        # Of a recording are other ranks of as many.
        alike = [
            of for of in recordings
            if trace.rank is not None and trace.rank not in of
            and all(it.rank is not None and it.world == trace.world for _, it in of.values())
        ]  # fmt: skip
        if not alike:
            recordings.append({})
        (alike or recordings[-1:])[0][trace.rank or 0] = file, trace
    for recording in recordings:
        first = recording[min(recording)][0]
        profile = _profile(dict(sorted(recording.items())), ranks)
        yield profile or Refusal(first, "shows no operation, kernel or exchange")


def _profile(recording: Mapping[int, tuple[Path, RankTrace]], ranks: int | None) -> Profile | None:
    """The profile of a recording's ranks; None where one of them shows nothing."""
    traces = {rank: trace for rank, (_, trace) in recording.items()}
    accounts = {rank: account_of_rank(trace) for rank, trace in traces.items()}
    known = {rank: account for rank, account in accounts.items() if account is not None}
    if len(known) < len(accounts):
        return None
    world = next(iter(traces.values())).world
    matched = matched_calls(traces) if len(traces) > 1 else []
    seconds = pd.DataFrame([account.seconds for account in known.values()])
    elapsed, useful, exposed = (
        seconds[name].to_numpy(float) for name in ("window", "computation", "exposed_communication")
    )
    messages = _messages(list(traces.values()), matched)
    notes: dict[str, Any] = {
        "window": next(iter(known.values())).window,
        "ranks": {str(rank): account.seconds for rank, account in known.items()},
        NOTE: call_rows(traces, known),
        "call_time": "of a call that all ranks' traces show, that of the last rank to begin"
        if matched else "of one rank, waiting for others included",
    }  # fmt: skip
    if impossible := sum(trace.negative for trace in traces.values()):
        notes["impossible_events"] = f"{impossible} events of impossible times were left out"
    complete = world is not None and len(traces) == world
    shows = world in (None, 1) or any(it.communication_s for it in known.values())
    if not shows:
        notes["communication"] = (
            f"no known collective in a trace of {world} ranks: computation may have others in it"
        )
    return Profile(
        tool="kineto",
        file=next(iter(recording.values()))[0],
        ranks=world or ranks or (len(traces) if len(traces) > 1 else 1),
        profiled_ranks=None if complete else len(traces),
        rank_times=RankTimes(elapsed, useful, exposed) if complete and shows else None,
        messages=messages,
        metrics=_metrics(seconds, [*known.values()], complete, shows),
        notes=notes,
    )


def _metrics(
    seconds: pd.DataFrame, accounts: Sequence[TraceAccount], complete: bool, shows: bool
) -> dict[str, dict[str, object]]:
    """Means over the ranks, and of a step where steps are known; without ``shows`` nothing is
    known of communication. ``seconds``: a row per rank.

    Of all ranks (``complete``) their balance too. No communication efficiency: what a trace shows
    beside computation is not all communication.
    """
    means = seconds.mean().to_dict()
    metrics = {
        "runtime" if name == "window" else str(name): metric(mean, "s", "lower")
        for name, mean in means.items()
        if shows or not str(name).endswith("_communication")
    }
    total = sum(account.communication_s for account in accounts)
    if total > 0:
        overlap = float(seconds["overlapped_communication"].sum()) / total
        metrics["overlap_share"] = metric(overlap, "1", "higher")
    steps = np.array([account.steps for account in accounts])
    useful = seconds["computation"] / np.maximum(steps, 1)
    if complete and useful.max() > 0:
        busy = float((seconds["computation"] / seconds["window"]).mean())
        metrics["parallel_efficiency"] = metric(busy, "1", "higher")
        metrics["load_balance"] = metric(float(useful.mean() / useful.max()), "1", "higher")
    if steps.all():
        length = float((seconds["window"] / steps).mean())
        metrics["step_time"] = metric(length, "s", "lower")
        metrics["steps"] = metric(float(steps.mean()), "steps", "higher")
    return metrics


def _messages(traces: Sequence[RankTrace], matched: Sequence[Matched]) -> tuple[Message, ...]:
    """Calls by operation, group and size, where the size is known; those that take most time."""
    times: dict[Collective, Any] = {}
    for trace in traces:
        for kind, own in trace.calls.items():
            if kind.size is not None and kind not in times:
                times[kind] = (own["end"] - own["begin"]).to_numpy() * 1e-6
    for each in matched:  # of the last rank to begin: what a call takes once all are there
        if each.kind in times:
            times[each.kind] = (each.calls[:, :, 1] - each.calls[:, :, 0]).min(axis=1)
    messages = [
        Message(
            kind.operation, float(kind.size or 0), int(seconds.size), float(seconds.mean()),
            float(seconds.std(ddof=1)) if seconds.size > 1 else None,
            group=kind.group, group_ranks=kind.ranks,
        )
        for kind, seconds in times.items()
        if seconds.size and seconds.mean() > 0
    ]  # fmt: skip
    messages.sort(key=lambda message: -message.count * message.mean_s)
    return tuple(messages[:MAX_SIZES])


NOTE = "collectives"
CALLS, LATE = "calls", "late"
MAX_ROWS = 4000  # of a recording; 128 ranks of 30 kinds of calls
_MS = 1e3
Rows = dict[str, list[dict[str, Any]]]


def call_rows(traces: Mapping[int, RankTrace], accounts: Mapping[int, TraceAccount]) -> Rows:
    """Rows of the tables `collectives` (``CALLS``) and `lateness` (``LATE``) of a recording: calls
    of each rank by group and operation, per step where the trace shows steps."""
    rows = [
        {**row, "rank": rank, "steps": account.steps}
        for rank, account in accounts.items()
        for row in account.calls
    ]
    rows.sort(key=lambda row: -(row["exposed_ms"] + row["overlapped_ms"]))
    shown = sorted(rows[:MAX_ROWS], key=lambda r: (r["group"], r["collective"], r["rank"]))
    steps = {
        rank: each.window_s * _MS / each.steps if each.steps else None
        for rank, each in accounts.items()
    }
    return {CALLS: shown, LATE: lateness_of(matched_calls(traces), steps)[:MAX_ROWS]}
