"""Horovod's timeline: time by phase, shares of a step, and messages by size.

A Chrome trace of rank 0, a JSON array that may never have been closed. A process id is a tensor.
``B`` and ``E`` nest: NEGOTIATE_ALLREDUCE, then ALLREDUCE with WAIT_FOR_DATA, QUEUE,
MEMCPY_IN_FUSION_BUFFER, MPI_ALLREDUCE (or NCCL_, GLOO_) and so on inside; ``E`` has no name, and
the outermost one says dtype and shape. ``X`` in a negotiation is the tick of a rank that is ready
(Horovod, docs/timeline.rst; common/timeline.cc).

A step begins where the negotiation of one allreduce begins that takes place in every step. Within
the steps after the first, the share of a phase is the union of its intervals, over all tensors.
Phases of different tensors overlap, so that shares do not add up to 1.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.profile import Message, Profile
from scalesweep.analysis.trace_account import covered, union
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
        messages=_messages(timeline), metrics=metrics, notes=notes,
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


NEGOTIATE = "NEGOTIATE_"
# Calls that move the data of an operation: MPI_ALLREDUCE in ALLREDUCE.
CALL = r"(?:MPI|NCCL|GLOO|CCL|DDL|ADASUM)_\w+"
NEGOTIATION, QUEUE, COPIES, WAIT, REDUCTION, IDLE = (
    "negotiation", "queue", "fusion_copies", "wait_for_data", "reduction", "idle",
)  # fmt: skip
# Phase -> how Horovod's names of it begin, in the order of an operation.
_NAMES: Mapping[str, str] = {
    NEGOTIATION: NEGOTIATE, WAIT: "WAIT_FOR", QUEUE: "QUEUE$", COPIES: "MEMCPY_", REDUCTION: CALL,
}  # fmt: skip
NOTE = "timeline"  # where the record of an imported timeline has its rows
_EVERY_STEP = f"{NEGOTIATE}ALLREDUCE"
_BYTES = {
    "uint8": 1, "int8": 1, "bool": 1, "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "float32": 4, "int64": 8, "float64": 8,
}  # fmt: skip


class NoTimelineError(ValueError):
    """What is wrong with a timeline."""


def read_timeline(text: str) -> pd.DataFrame:
    """A row per phase that has ended, in seconds; raises NoTimelineError for what is no timeline.

    Columns: ``name``, ``tensor``, ``begin``, ``end``, ``operation`` (a number for each outermost
    phase, which all within it have), ``inner`` (whether it lies in one), ``size`` of the tensor in
    bytes, not a number where it is not known. ``attrs``: ``unfinished`` phases, ``length`` in s,
    whether the array is ``closed``, and ``ranks``: one more than the highest that has a tick.
    """
    events, closed = _events(text)
    phases: list[dict[str, Any]] = []
    open_: dict[int, list[dict[str, Any]]] = {}
    sizes: dict[int, float] = {}
    times, operations, ranks = [], 0, 0
    for place, event in enumerate(events):
        kind, tensor, when = (event.get(name) for name in ("ph", "pid", "ts"))
        if kind not in ("B", "E", "X"):
            continue
        if not isinstance(tensor, int) or not isinstance(when, int | float):
            raise NoTimelineError(f"event {place}: without tensor or time")
        stack, now = open_.setdefault(tensor, []), when * 1e-6
        times.append(now)
        if kind == "B":
            operations += not stack
            operation = stack[0]["operation"] if stack else operations
            head = {"name": str(event.get("name")), "tensor": tensor, "begin": now}
            stack.append({**head, "operation": operation, "inner": bool(stack)})
        elif kind == "X":
            if stack and stack[-1]["name"].startswith(NEGOTIATE):
                ranks = max(ranks, int(event.get("name", -1)) + 1)
        elif not stack or now < stack[-1]["begin"] or (len(stack) > 1 and event.get("args")):
            # Only the end of an outermost phase says dtype and shape.
            raise NoTimelineError(f"event {place} ends what has not begun: lines are missing")
        else:
            phases.append({**stack.pop(), "end": now})
            sizes.setdefault(phases[-1]["operation"], _size(event.get("args")))
            if not stack:
                sizes[phases[-1]["operation"]] = _size(event.get("args"))
    columns = ["name", "tensor", "begin", "end", "operation", "inner"]
    frame = pd.DataFrame(phases, columns=columns)
    frame["size"] = frame["operation"].map(sizes).astype(float)
    frame.attrs = {
        "unfinished": sum(map(len, open_.values())), "closed": closed, "ranks": ranks or None,
        "length": max(times, default=0) - min(times, default=0),
    }  # fmt: skip
    return frame


def _events(text: str) -> tuple[list[Mapping[str, Any]], bool]:
    """Every event, and whether the array has its end; the last event may be cut."""
    import orjson

    whole = text.rstrip().removesuffix("]").rstrip().rstrip(",")
    for cut in (whole, whole[: whole.rfind("}\n") + 1], whole[: whole.rfind("},") + 1]):
        try:
            events = orjson.loads(f"{cut}]")
        except ValueError:
            continue
        if isinstance(events, list) and all(isinstance(event, dict) for event in events):
            return events, text.rstrip().endswith("]")
    raise NoTimelineError("not a JSON array of events: damaged")


def _size(args: Any) -> float:
    """Bytes of a tensor, from dtype and shape; not a number where they are not known."""
    if not isinstance(args, dict) or not isinstance(args.get("shape"), str):
        return math.nan
    width = _BYTES.get(str(args.get("dtype")), math.nan)
    return width * math.prod(map(int, re.findall(r"\d{1,15}", args["shape"])))


def timeline_rows(timeline: pd.DataFrame) -> list[dict[str, Any]]:
    """A row of the table `timeline` for each phase; none where no allreduce is repeated three times
    or more. Shares are None of a phase that the timeline never shows."""
    begins = _step_begins(timeline)
    if len(begins) < 3:
        return []
    steps, window = len(begins) - 2, np.array([[begins[1], begins[-1]]])
    whole = float(begins[-1] - begins[1])

    def share(phases: pd.DataFrame) -> float:
        return covered(phases[["begin", "end"]].to_numpy(float), window) / whole

    shares: dict[str, float | None] = {}
    for name, begin in _NAMES.items():
        phases = timeline[timeline["name"].str.match(begin)]
        shares[name] = share(phases) if len(phases) else None
    shares[IDLE] = 1 - share(timeline)
    return [
        {
            "phase": name,
            "share": of_step,
            "ms": None if of_step is None else of_step * whole * 1e3 / steps,
            "steps": steps,
        }
        for name, of_step in shares.items()
    ]


def _step_begins(timeline: pd.DataFrame) -> list[float]:
    """When each step begins: the negotiations of the earliest allreduce that is in every step.

    Tensors that are reduced at times only (metrics of an epoch) and those that are broadcast are
    left out: a step has the median number of allreduces of all tensors that have several.
    """
    every = timeline[timeline["name"] == _EVERY_STEP].groupby("tensor")["begin"]
    several = [sorted(begins) for _, begins in every if len(begins) > 1]
    usual = int(np.median([len(begins) for begins in several])) if several else 0
    return min((begins for begins in several if len(begins) == usual), key=min, default=[])
