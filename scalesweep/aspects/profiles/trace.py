"""The tables `trace`, `operations` and `trace_stamps`: where the time of a step goes in traces of a
framework's own profiler, by part, by device and type of operation, and beside time stamps.

Of runs under ``profile: tensorflow`` or ``profile: torch``, from the files that their ranks left.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.torch_trace import (
    TorchTrace,
    read_torch_trace,
    torch_account,
    torch_operations,
    unpacked,
)
from scalesweep.analysis.trace_account import PARTS, TraceAccount, trace_account
from scalesweep.analysis.trace_and_stamps import SideBySide
from scalesweep.analysis.trace_operations import (
    OperationTime,
    TraceOperations,
    mean_over,
    trace_operations,
)
from scalesweep.analysis.xplane import read_xplane
from scalesweep.aspects.profiles.functions import profile_files
from scalesweep.aspects.profiles.trace_stamps import (
    TraceBeside,
    beside_of,
    beside_rows,
    stamps_of,
)
from scalesweep.core.errors import UserError
from scalesweep.core.files import read_regular
from scalesweep.core.profilers import TENSORFLOW, TORCH
from scalesweep.core.status import Status
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import TableInputs

MAX_RUNS = 12
MAX_RANKS = 8  # of a run, evenly
# Of a file, and of PyTorch's text in it. A file of TensorFlow's of 1 MB takes a third of a second,
# a text of PyTorch's a twentieth.
MAX_BYTES = 16 << 20
MAX_TEXT_BYTES = 64 << 20
MAX_OPERATIONS = 30  # of a device
OTHERS = "(others)"

_Trace = tuple[TraceAccount | None, TraceOperations | None]


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
    """A type of operation on a device in a traced run: times per step, means over its ranks.

    Times of threads (and streams) add up. The 30 types that take longest, then `(others)`.
    """

    run_id: str = column("the run that was traced")
    device: str = column("`CPU`, `CPU, input pipeline` (threads of tf.data), or `GPU:0`, ...")
    operation: str = column(
        "type of the operation, as its framework calls it; of GPUs also copies, `(collectives)` "
        "and `(kernels without an operation)`"
    )
    ms: float = column("time without operations that it calls, per step", "ms")
    gradient_ms: float = column("of that, in nodes of the gradient", "ms")
    calls: float = column("calls (of GPUs: kernels) per step", "1")
    share: float | None = column("share of the time of all operations of the device", "1")
    steps: int = column("steps of a rank", "1")
    traced_ranks: int = column("ranks whose trace shows steps", "1")


def trace_rows(inputs: TableInputs) -> Iterator[TracePart | TraceOperation | TraceBeside]:
    """A row per traced run and part of a step, per device and type of operation, and per quantity
    that its stamps know too.

    Of at most MAX_RUNS runs, MAX_RANKS ranks of each, and files of at most MAX_BYTES: larger ones
    are for a viewer.
    """
    data, runs = inputs.data, inputs.runs
    if runs is None:
        return
    traced = [
        run
        for run in data.experiment["profiles"]
        if run["kind"] in _READERS and run["status"] == Status.DONE
    ]
    for run in traced[:MAX_RUNS]:
        try:
            traces, beside = _traces(runs / run["run_id"], run["kind"])
        except (UserError, OSError, KeyError, TypeError, ValueError):
            data.unread.append(run["run_id"])
            continue
        if traces:
            yield from _rows(run, [account for account, _ in traces], data.axes)
            yield from _operations(run, [each for _, each in traces], data.axes)
        yield from beside_rows(run, beside, runs, data.axes)


def _of_tensorflow(content: bytes) -> tuple[_Trace, None]:
    lines = read_xplane(content)
    return (trace_account(lines), trace_operations(lines)), None


def _of_torch(content: bytes) -> tuple[_Trace, TorchTrace]:
    trace = read_torch_trace(unpacked(content, MAX_TEXT_BYTES))
    return (torch_account(trace), torch_operations(trace)), trace


# Kind of profile -> how the names of its ranks' files end, and their reader.
_READERS: Mapping[str, tuple[str, Callable[[bytes], tuple[_Trace, TorchTrace | None]]]] = {
    TENSORFLOW: (".xplane.pb", _of_tensorflow),
    TORCH: (".json.gz", _of_torch),
}


def _traces(
    folder: Path, kind: str
) -> tuple[list[tuple[TraceAccount, TraceOperations]], list[SideBySide]]:
    """The accounts of a run's ranks that show steps, with their operations; and those of ranks
    whose stamps show the same steps."""
    suffix, read_trace = _READERS[kind]
    files = [path for path in profile_files(folder) if path.name.endswith(suffix)]
    places = np.linspace(0, len(files) - 1, min(len(files), MAX_RANKS)).round().astype(int)
    chosen = [files[place] for place in places.tolist()]
    stamps = stamps_of(folder) if kind == TORCH else []
    traces, beside = [], []
    for path in chosen:
        if path.stat().st_size > MAX_BYTES:
            continue
        (account, operations), trace = read_trace(read_regular(path, MAX_BYTES))
        if account is not None and operations is not None:
            traces.append((account, operations))
        rank = path.name.removesuffix(suffix).removeprefix("rank")
        if trace is not None and rank.isdecimal() and (both := beside_of(trace, stamps, int(rank))):
            beside.append(both)
    return traces, beside


def _rows(
    run: Mapping[str, Any], accounts: Sequence[TraceAccount], axes: Sequence[str]
) -> Iterator[TracePart]:
    for part in PARTS:
        shares = [account.shares[part] for account in accounts]
        known = any(share is not None for share in shares)
        # What the traces of some ranks do not show took none of their time; of none, nobody knows.
        every = [share or 0.0 for share in shares]
        ms = [account.step_s * 1e3 * share for account, share in zip(accounts, every, strict=True)]
        yield TracePart(
            point={name: run["point"].get(name) for name in axes},
            run_id=run["run_id"],
            part=part,
            share=float(np.mean(every)) if known else None,
            least=min(every) if known else None,
            most=max(every) if known else None,
            ms=float(np.mean(ms)) if known else None,
            steps=min(account.steps for account in accounts),
            traced_ranks=len(accounts),
        )


def _operations(
    run: Mapping[str, Any], traces: Sequence[TraceOperations], axes: Sequence[str]
) -> Iterator[TraceOperation]:
    by_device: dict[str, list[tuple[str, OperationTime]]] = {}
    for device, operation, time in mean_over(traces):
        by_device.setdefault(device, []).append((operation, time))
    for device, every in by_device.items():
        whole = sum(time.seconds for _, time in every)
        shown, rest = every[:MAX_OPERATIONS], [time for _, time in every[MAX_OPERATIONS:]]
        if rest:
            others = OperationTime(
                sum(time.seconds for time in rest),
                sum(time.gradient_s for time in rest),
                sum(time.calls for time in rest),
            )
            shown = [*shown, (OTHERS, others)]
        for operation, time in shown:
            yield TraceOperation(
                point={name: run["point"].get(name) for name in axes},
                run_id=run["run_id"],
                device=device,
                operation=operation,
                ms=time.seconds * 1e3,
                gradient_ms=time.gradient_s * 1e3,
                calls=time.calls,
                share=time.seconds / whole if whole > 0 else None,
                steps=min(trace.steps for trace in traces),
                traced_ranks=len(traces),
            )
