"""Traces as PyTorch's profiler writes them: steps of 10 ms on a CPU and on a GPU."""

import gzip
import json
from typing import Any

BEGIN_US = 4_534_681_793_764.207  # as Kineto counts: microseconds since a time of its own
MAIN, LOOP = 7, 8  # threads: the program's and Gloo's
STEPS = 4

Event = dict[str, Any]


def event(cat: str, name: str, begin_ms: float, ms: float, tid: int = MAIN, **args: Any) -> Event:
    """An event with a begin and a length."""
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 5, "tid": tid,
        "ts": BEGIN_US + 1e3 * begin_ms, "dur": 1e3 * ms, "args": args,
    }  # fmt: skip


def on_cpu() -> list[Event]:
    """Of each step 1 ms of input, 5 of computation, 2 of Gloo's 4 ms behind it, 2 of nothing."""
    events: list[Event] = [{"ph": "M", "name": "process_name", "pid": 5, "args": {"name": "p"}}]
    for at in (10.0 * step for step in range(STEPS)):
        gradient = "autograd::engine::evaluate_function: MmBackward0"
        events += [
            event("user_annotation", "enumerate(DataLoader)#_Next", at, 1),
            event("cpu_op", "aten::stack", at + 0.2, 0.5),  # of the input
            event("user_annotation", "DistributedDataParallel.forward", at + 1, 5),
            event("cpu_op", "aten::linear", at + 1, 2, **{"External id": 1}),
            event("cpu_op", "aten::mm", at + 1.5, 1.5, **{"External id": 2}),
            event("cpu_op", gradient, at + 3, 5),
            event("cpu_op", "aten::mm", at + 3, 2, **{"External id": 3}),
            event("cpu_op", "c10d::allreduce_", at + 5, 0.1),
            event("user_annotation", "gloo:all_reduce", at + 3, 4, LOOP),
            event("user_annotation", "Optimizer.step#SGD.step", at + 8, 2),
            event("cpu_op", "aten::add_", at + 9, 1),
        ]
    return events


def on_gpu() -> list[Event]:
    """The same with 4 ms of kernels, 1 of NCCL's 3 ms behind them and half a ms of copies."""
    events = on_cpu()
    for at in (10.0 * step for step in range(STEPS)):
        of_gpu = {"device": 0, "stream": 7}
        events += [
            event("kernel", "sgemm", at + 2, 1, 70, **of_gpu, **{"External id": 2}),
            event("kernel", "sgemm_bwd", at + 3, 3, 70, **of_gpu, **{"External id": 3}),
            event("kernel", "ncclDevKernel_AllReduce", at + 4, 3, 71, **of_gpu),
            event("gpu_memcpy", "Memcpy HtoD", at + 7, 0.5, 70, **of_gpu),
        ]
    return [each for each in events if not each["name"].startswith("gloo:")]


def text(events: list[Event]) -> bytes:
    """The file of such events, as a profiler leaves it."""
    return gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
