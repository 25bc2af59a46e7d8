"""Traces of PyTorch's profiler (Kineto), one for each rank (``analysis.kineto_account``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.kineto_account import (
    Lateness,
    RankAccount,
    account_of_rank,
    lateness_of,
    matched_calls,
    transfer_times,
)
from scalesweep.analysis.kineto_stream import Collective, NoTraceError, RankTrace, read_stream
from scalesweep.analysis.pop import PopFactors, rank_factors
from scalesweep.analysis.profile import Message, Profile, RankTimes
from scalesweep.compute.log_lines import open_packed
from scalesweep.importers.imported_run import Refusal
from scalesweep.importers.profiles.source import ReadResult, metric

TOOL = "kineto"
MAX_SIZES = 200
MAX_KINDS = 50


def recognise(head: str) -> bool:
    """Whether a file begins as a trace of Kineto's does."""
    return head.lstrip().startswith("{") and '"schemaVersion"' in head and '"traceEvents"' in head


def read(files: Sequence[Path], ranks: int | None = None) -> ReadResult:
    """A profile of the traces of a folder: the ranks of a recording are one; ``ranks`` where traces
    do not tell the number of them."""
    result = ReadResult([], [])
    recordings: list[dict[int, tuple[Path, RankTrace]]] = []
    for file in files:
        try:
            with open_packed(file) as stream:
                trace = read_stream(stream)
        except (NoTraceError, EOFError) as error:
            result.refusals.append(Refusal(file, str(error)))
            continue
        if trace.rank is None:
            recordings.append({0: (file, trace)})
            continue
        place = next((each for each in recordings if _takes(each, trace)), None)
        if place is None:
            recordings.append(place := {})
        place[trace.rank] = file, trace
    for recording in recordings:
        first = recording[min(recording)][0]
        profile = _profile(dict(sorted(recording.items())), ranks)
        if profile is None:
            result.refusals.append(Refusal(first, "shows no operation, kernel or exchange"))
        else:
            result.profiles.append(profile)
    return result


def _takes(recording: Mapping[int, tuple[Path, RankTrace]], trace: RankTrace) -> bool:
    """Whether a trace is of another rank of a recording."""
    others = [other for _, other in recording.values()]
    same = all(other.rank is not None and other.world == trace.world for other in others)
    return same and trace.rank not in recording


def _profile(recording: Mapping[int, tuple[Path, RankTrace]], ranks: int | None) -> Profile | None:
    """The profile of a recording's ranks; None where one of them shows nothing."""
    traces = [trace for _, trace in recording.values()]
    accounts = {rank: account_of_rank(trace) for rank, (_, trace) in recording.items()}
    known = {rank: account for rank, account in accounts.items() if account is not None}
    if len(known) < len(accounts):
        return None
    world = traces[0].world
    matched = matched_calls(traces) if len(traces) > 1 else {}
    late = lateness_of(matched)
    elapsed = np.array([account.window_s for account in known.values()])
    useful = np.array([account.computation_s for account in known.values()])
    exposed = np.array([account.exposed_s for account in known.values()])
    messages, left_out = _messages(traces, matched)
    notes: dict[str, Any] = {
        "window": "the profiler's steps" if traces[0].steps.begins else "the whole trace",
        "ranks": {str(rank): _numbers(account) for rank, account in known.items()},
        "exposed": _exposed(list(known.values())),
        "call_time": "of a call that all ranks' traces show, that of the last rank to begin"
        if matched else "of one rank, waiting for others included",
    }  # fmt: skip
    if late is not None:
        notes["lateness"] = _late(late, list(recording))
    if left_out:
        notes["messages_left_out"] = f"{left_out} sizes that took the least time"
    complete = world is not None and len(traces) == world
    return Profile(
        tool=TOOL,
        file=next(iter(recording.values()))[0],
        ranks=world or ranks or (len(traces) if len(traces) > 1 else 1),
        profiled_ranks=None if complete else len(traces),
        elapsed_s=float(elapsed.max()),
        rank_times=RankTimes(elapsed, useful, exposed) if complete else None,
        factors=_factors(useful, float(elapsed.max())) if complete else None,
        messages=messages,
        metrics=_metrics(list(known.values())),
        notes=notes,
    )


def _factors(useful: Any, runtime: float) -> PopFactors | None:
    return rank_factors(useful, runtime) if (useful > 0).all() and runtime > 0 else None


def _metrics(accounts: Sequence[RankAccount]) -> dict[str, dict[str, object]]:
    """Means over the ranks, and of a step where the profiler's steps are known."""
    seconds = {
        "runtime": [account.window_s for account in accounts],
        "computation": [account.computation_s for account in accounts],
        "exposed_communication": [account.exposed_s for account in accounts],
        "overlapped_communication": [account.overlapped_s for account in accounts],
        "copies": [account.copies_s for account in accounts],
        "idle": [account.idle_s for account in accounts],
    }
    metrics = {
        name: metric(float(np.mean(values)), "s", "lower") for name, values in seconds.items()
    }
    total = sum(account.communication_s for account in accounts)
    if total > 0:
        overlap = sum(account.overlapped_s for account in accounts) / total
        metrics["overlap_share"] = metric(overlap, "1", "higher")
    if steps := min(account.steps for account in accounts):
        length = float(np.mean([account.window_s / account.steps for account in accounts]))
        metrics["step_time"] = metric(length, "s", "lower")
        metrics["steps"] = metric(steps, "steps", "higher")
    return metrics


def _numbers(account: RankAccount) -> dict[str, float]:
    """A rank's account in seconds."""
    return {
        "window": account.window_s,
        "computation": account.computation_s,
        "exposed_communication": account.exposed_s,
        "overlapped_communication": account.overlapped_s,
        "copies": account.copies_s,
        "idle": account.idle_s,
    }


def _exposed(accounts: Sequence[RankAccount]) -> list[dict[str, Any]]:
    """Exposed seconds by process group and collective, mean over the ranks, the most first."""
    seconds: dict[tuple[str, str], float] = {}
    for account in accounts:
        for kind, value in account.exposed_by.items():
            key = kind.group, kind.operation
            seconds[key] = seconds.get(key, 0.0) + value / len(accounts)
    most = sorted(seconds.items(), key=lambda item: -item[1])[:MAX_KINDS]
    return [
        {"group": group, "collective": operation, "exposed_s": value}
        for (group, operation), value in most
    ]


def _late(late: Lateness, ranks: Sequence[int]) -> dict[str, Any]:
    """Who comes late, by rank."""
    worst = int(late.mean_s.argmax())
    return {
        "calls": late.calls,
        "clocks": "aligned by the median difference of the ends of calls",
        "latest": ranks[worst],
        "mean_s": {str(rank): float(s) for rank, s in zip(ranks, late.mean_s, strict=True)},
        "last_share": {
            str(rank): float(share) for rank, share in zip(ranks, late.last_share, strict=True)
        },
        "clock_ahead_s": {
            str(rank): float(s) for rank, s in zip(ranks, late.offset_s, strict=True)
        },
    }


def _messages(
    traces: Sequence[RankTrace], matched: Mapping[Collective, Any]
) -> tuple[tuple[Message, ...], int]:
    """Calls by operation, group and size, where the size is known."""
    times: dict[Collective, Any] = {}
    for trace in traces:
        for kind, spans in trace.calls.items():
            if kind.size is not None and kind not in times:
                table = spans.matrix() * 1e-6
                times[kind] = table[:, 1] - table[:, 0]
    times |= {kind: transfer_times(calls) for kind, calls in matched.items() if kind in times}
    messages = [
        Message(
            kind.operation,
            float(kind.size or 0),
            int(seconds.size),
            float(seconds.mean()),
            float(seconds.std(ddof=1)) if seconds.size > 1 else None,
            group=kind.group,
            group_ranks=kind.ranks,
        )
        for kind, seconds in times.items()
        if seconds.size and seconds.mean() > 0
    ]
    messages.sort(key=lambda message: -message.count * message.mean_s)
    return tuple(messages[:MAX_SIZES]), max(len(messages) - MAX_SIZES, 0)
