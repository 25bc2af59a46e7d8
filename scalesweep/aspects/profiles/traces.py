"""The tables `trace`, `operations`, `collectives` and `lateness`, from traces of frameworks' own
profilers: the parts of a step, operations by device, what ranks exchanged, and who came late.

Of runs under ``profile: tensorflow`` or ``profile: torch`` from the files that their ranks left,
of imported traces from what the import noted in their records.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.kineto_stream import RankTrace, read_stream
from scalesweep.analysis.trace_account import PARTS, TraceAccount, account_of_rank
from scalesweep.analysis.xplane import Operation, read_steps
from scalesweep.aspects.profiles.functions import done_runs, head_of, noted, profile_files
from scalesweep.compute.log_lines import open_packed
from scalesweep.core.errors import UserError
from scalesweep.core.profilers import TENSORFLOW, TORCH
from scalesweep.importers.profiles.kineto import CALLS, LATE, NOTE, Rows, call_rows
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import TableInputs

MAX_RUNS = 12
MAX_RANKS = 16  # of a run: the first ones
MAX_BYTES = 16 << 20  # of a file
MAX_OPERATIONS = 30  # of a device
OTHERS = "(others)"
_ENDS = {TENSORFLOW: ".xplane.pb", TORCH: ".json.gz"}


@dataclass(frozen=True, kw_only=True)
class TracePart(DeclaredRow, table="trace", leading=("run_id",)):
    """A part of a step in a traced run, over its ranks; what a trace does not show is missing."""

    run_id: str = column("the run that was traced")
    part: str = column("computation, communication, copies, input or rest")
    share: float | None = column("share of a step, mean over the ranks", "1")
    least: float | None = column("the least of one rank", "1")
    most: float | None = column("the most of one rank", "1")
    ms: float | None = column("time per step, mean over the ranks", "ms")
    steps: int = column("steps of a rank", "1")
    traced_ranks: int = column("ranks whose trace shows steps", "1")


@dataclass(frozen=True, kw_only=True)
class TraceOperation(DeclaredRow, table="operations", leading=("run_id",)):
    """A type of operation on a device in a run that TensorFlow's profiler traced: times per step,
    means over its ranks.

    Times of threads (and streams) add up. The 30 types that take longest, then `(others)`.
    """

    run_id: str = column("the run that was traced")
    device: str = column("`CPU`, `CPU, input pipeline` (threads of tf.data), or `GPU:0`, ...")
    operation: str = column(
        "type of the operation, as TensorFlow calls it; of GPUs also copies, `(collectives)` "
        "and `(kernels without an operation)`"
    )
    ms: float = column("time without operations that it calls, per step", "ms")
    gradient_ms: float = column("of that, in nodes of the gradient", "ms")
    calls: float = column("calls (of GPUs: kernels) per step", "1")
    share: float | None = column("share of the time of all operations of the device", "1")


@dataclass(frozen=True, kw_only=True)
class CollectiveTime(DeclaredRow, table="collectives", leading=("run_id",)):
    """The calls of an operation that a rank made in a group, in a traced run.

    Times are per step where the trace shows steps, else of the whole trace; what overlaps counts
    once. Exposed is what no computation hides.
    """

    run_id: str = column("the run that was traced")
    group: str = column("the process group, as the trace names it; empty where it does not")
    members: str | None = column("its ranks; groups of other ranks may have the same name")
    collective: str = column("the operation; `unknown` where the trace does not say")
    rank: int = column("the rank")
    steps: int = column("steps of the trace; 0: it shows none", "1")
    calls: float = column("calls per step", "1")
    bytes: float | None = column("what they moved per step, as nccl-tests counts sizes", "bytes")
    exposed_ms: float = column("exposed time per step", "ms")
    overlapped_ms: float = column("time behind computation per step", "ms")


@dataclass(frozen=True, kw_only=True)
class RankLateness(DeclaredRow, table="lateness", leading=("run_id",)):
    """How late a rank begins the collectives of a group, after the first rank, in a traced run.

    Calls that end on all ranks together, matched by their sequence numbers or by their order, with
    clocks aligned on these ends.
    """

    run_id: str = column("the run that was traced")
    group: str = column("the process group, as the trace names it; empty where it does not")
    members: str = column("its ranks whose traces are there")
    rank: int = column("the rank")
    calls: int = column("calls that all of them made", "1")
    late_median_ms: float = column("how late it begins a call, median", "ms")
    step_ms: float | None = column("a step of its trace", "ms")
    last_share: float = column("share of the calls that it was the last to begin", "1")
    latest: bool = column(
        "whether it is late throughout the recording, by more than chance allows "
        "(docs/methods/traces.md)"
    )
    clock_ahead_ms: float = column("what its clock was ahead of the first rank's", "ms")


def trace_rows(
    inputs: TableInputs,
) -> Iterator[TracePart | TraceOperation | CollectiveTime | RankLateness]:
    """The rows of all four tables, of at most MAX_RUNS runs, MAX_RANKS ranks of each, and files of
    at most MAX_BYTES: larger ones are for a viewer."""
    data = inputs.data
    if inputs.runs is None:
        return
    for run in done_runs(data, *_ENDS)[:MAX_RUNS]:
        head = head_of(run, data.axes)
        try:
            files = _files(inputs.runs / run["run_id"], _ENDS[run["kind"]])
            if run["kind"] == TORCH:
                accounts, rows = _of_torch(files)
                yield from _parts(head, accounts)
                yield from _exchange(head, rows)
            else:
                read = [read_steps(path.read_bytes()) for path in files]
                known = [each for each in read if each is not None]
                yield from _parts(head, [account for account, _ in known])
                yield from _operations(head, [operations for _, operations in known])
        except (UserError, OSError, EOFError, KeyError, TypeError, ValueError):
            data.unread.append(run["run_id"])
    for imported, noted_rows in noted(inputs, NOTE, MAX_RUNS):
        yield from _exchange(head_of(imported, data.axes), noted_rows)


def _files(folder: Path, end: str) -> list[Path]:
    files = [path for path in profile_files(folder) if path.name.endswith(end)]
    return [path for path in files if path.stat().st_size <= MAX_BYTES][:MAX_RANKS]


def _of_torch(files: Sequence[Path]) -> tuple[list[TraceAccount], Rows]:
    """The accounts of ranks whose traces show steps, and the rows of their exchange."""
    traces: dict[int, RankTrace] = {}
    for path in files:
        with open_packed(path) as stream:
            traces[int(path.name.removesuffix(".json.gz").removeprefix("rank"))] = read_stream(
                stream
            )
    accounts = {rank: account_of_rank(trace) for rank, trace in sorted(traces.items())}
    known = {rank: account for rank, account in accounts.items() if account is not None}
    return [each for each in known.values() if each.steps], call_rows(traces, known)


def _exchange(
    head: Mapping[str, Any], rows: Mapping[str, Any]
) -> Iterator[CollectiveTime | RankLateness]:
    yield from (CollectiveTime(**head, **row) for row in rows[CALLS])
    yield from (RankLateness(**head, **row) for row in rows[LATE])


def _parts(head: Mapping[str, Any], accounts: Sequence[TraceAccount]) -> Iterator[TracePart]:
    """A row per part of a step. What the traces of some ranks do not show took none of their time;
    of none, nobody knows."""
    windows, steps = (np.array([getattr(account, name) for account in accounts], np.float64)
                      for name in ("window_s", "steps"))  # fmt: skip
    for part in PARTS if accounts else ():
        seconds = np.array([account.parts[part] for account in accounts], np.float64)
        shown = np.nan_to_num(seconds)
        shares, ms = shown / windows, 1e3 * shown / steps
        cells: dict[str, Any] = {
            "share": shares.mean(), "least": shares.min(), "most": shares.max(), "ms": ms.mean(),
        }  # fmt: skip
        known = cells if np.isfinite(seconds).any() else dict.fromkeys(cells)
        least = int(steps.min())
        yield TracePart(**head, **known, part=part, steps=least, traced_ranks=len(accounts))


def _operations(
    head: Mapping[str, Any], ranks: Sequence[Sequence[Operation]]
) -> Iterator[TraceOperation]:
    """Means over the ranks, device by device, the longest first; a rank without one has 0 of it."""
    every = pd.DataFrame([row for rank in ranks for row in rank], columns=Operation._fields)
    means = every.groupby(["device", "operation"]).sum() / max(len(ranks), 1)
    for device, rows in means.groupby("device"):
        own = rows.droplevel("device").sort_values("seconds", ascending=False)
        shown, rest = own[:MAX_OPERATIONS], own[MAX_OPERATIONS:]
        if len(rest):
            shown = pd.concat([shown, rest.sum().rename(OTHERS).to_frame().T])
        whole = own["seconds"].sum()
        for name, row in shown.iterrows():
            yield TraceOperation(
                **head,
                device=str(device),
                operation=str(name),
                ms=1e3 * row["seconds"],
                gradient_ms=1e3 * row["gradient_s"],
                calls=row["calls"],
                share=row["seconds"] / whole if whole > 0 else None,
            )
