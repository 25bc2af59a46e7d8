"""Horovod's timelines: time by phase, and messages by size (``analysis.horovod_timeline``)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from scalesweep.analysis.horovod_timeline import (
    CALL,
    NEGOTIATE,
    NOTE,
    NoTimelineError,
    read_timeline,
    timeline_rows,
)
from scalesweep.analysis.profile import Message, Profile
from scalesweep.analysis.trace_account import union
from scalesweep.importers.imported_run import ImportRefusedError, metric
from scalesweep.importers.profiles.base import each, text_of

MAX_SIZES = 200


def sign(head: str) -> bool:
    """Whether a file begins as a timeline of Horovod does."""
    return head.lstrip().startswith("[") and (
        "start_time_since_epoch_in_micros" in head or f'"{NEGOTIATE}' in head
    )


def _profiles(file: Path, ranks: int | None) -> Iterator[Profile]:
    """Seconds of each phase, shares of a step, and messages by size; ``ranks`` if it names none.

    Which ranks took part is known from the ticks in negotiations that missed Horovod's cache.
    Raises ImportRefusedError if the file is damaged, has no whole phase, or names more ranks than
    ``ranks``.
    """
    try:
        timeline = read_timeline(text_of(file))
    except NoTimelineError as error:
        raise ImportRefusedError(str(error)) from None
    known = timeline.attrs
    if timeline.empty:
        raise ImportRefusedError("no phase of any tensor in it begins and ends")
    if known["ranks"] and ranks and ranks < known["ranks"]:
        raise ImportRefusedError(f"names rank {known['ranks'] - 1}, but --ranks {ranks}")
    metrics = {"timeline_length": metric(known["length"], "s", "lower")}
    for name, phases in timeline.groupby("name", sort=False):
        plain = re.sub(r"\W+", "_", str(name).lower()).strip("_")
        spans = phases[["begin", "end"]].to_numpy(float)
        for kind, of in (("sum", spans), ("union", union(spans))):
            metrics[f"{plain}_{kind}"] = metric(float((of[:, 1] - of[:, 0]).sum()), "s", "lower")
    rows = timeline_rows(timeline)
    for row in rows:
        if row["share"] is not None:
            metrics[f"{row['phase']}_share"] = metric(row["share"], "1", "lower")
    notes: dict[str, object] = {
        "clock": "that of rank 0",
        "phases": "sum: over all tensors; union: while at least one tensor was in it",
        **({NOTE: rows} if rows else {}),
    }
    if not known["closed"]:
        notes["unclosed"] = "the file was not closed, as of a run that was ended"
    if known["unfinished"]:
        notes["unfinished"] = f"{known['unfinished']} phases had begun and not ended: not counted"
    yield Profile(
        tool="horovod_timeline", file=file, ranks=ranks or known["ranks"],
        elapsed_s=known["length"], messages=_messages(timeline), metrics=metrics, notes=notes,
    )  # fmt: skip


read = each(_profiles)


def _messages(timeline: pd.DataFrame) -> tuple[Message, ...]:
    """Calls by operation and size, those that take most time.

    Tensors whose calls overlap were fused into one: its size is theirs together, its time is from
    the first begin to the last end. Where an operation makes several kinds of calls, as a
    hierarchical allreduce within nodes and between them, each is of a part of the ranks.
    """
    calls = timeline[timeline["inner"] & timeline["name"].str.fullmatch(CALL)].sort_values("begin")
    calls["parted"] = calls.groupby("operation")["name"].transform("nunique") > 1
    messages = []
    for name, own in calls.groupby("name"):
        call = (own["begin"] >= own["end"].cummax().shift(fill_value=0)).cumsum()
        fused = own.groupby(call).agg(
            begin=("begin", "min"), end=("end", "max"), parted=("parted", "any"),
            size=("size", lambda sizes: sizes.sum(skipna=False)),
        )  # fmt: skip
        fused["seconds"] = fused["end"] - fused["begin"]
        for size, alike in fused[(fused["size"] > 0) & (fused["seconds"] > 0)].groupby("size"):
            mean, std = alike["seconds"].mean(), alike["seconds"].std()
            messages.append(
                Message(
                    str(name), int(size), len(alike), float(mean),  # type: ignore[arg-type]
                    float(std) if len(alike) > 1 else None, not alike["parted"].any(),
                )
            )  # fmt: skip
    messages.sort(key=lambda message: -message.count * message.mean_s)
    return tuple(sorted(messages[:MAX_SIZES], key=lambda each: (each.operation, each.size)))
