"""Traces as Kineto writes them of GPUs, of which each part is known."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGIN_US = 3_743_411_000_000.0
# Of a step, in ms.
STEP, COMPUTATION, EXPOSED, OVERLAPPED, COPIES = 10.0, 6.0, 1.5, 1.0, 0.5
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _event(cat: str, name: str, at: float, length: float, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": round(at, 3),
            "dur": round(length, 3), "args": args}  # fmt: skip


def events(steps: int, kernels: int, late_ms: float) -> Iterator[dict[str, Any]]:
    """Steps of ``kernels`` kernels of two streams that overlap, an allreduce that ends 7.5 ms after
    the step's begin on all ranks, and a copy of 1 ms, half of it behind the allreduce."""
    number = 0
    for step in range(steps):
        at = BEGIN_US + 1e3 * STEP * step
        yield _event("user_annotation", f"ProfilerStep#{step}", at, 1e3 * STEP, 1)
        size = 1e3 * COMPUTATION / kernels
        work: list[tuple[str, str, float, float, int, dict[str, Any]]] = [
            ("kernel", "gemm", at + size * k, size, 7 + 4 * (k % 2), {}) for k in range(kernels)
        ]
        said = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "dtype": "Float",
                "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
                "Process Group Description": "default_pg", "Seq": step}  # fmt: skip
        begin = 1e3 * (COMPUTATION - OVERLAPPED + late_ms)
        work.append(("kernel", NCCL, at + begin, 7.5e3 - begin, 20, said))
        work.append(("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", at + 7e3, 1e3, 7, {}))
        for k, (cat, name, when, length, stream, args) in enumerate(work):
            number += 1
            call = at + 1e3 * STEP * k / (2 * len(work))
            launch = "cudaMemcpyAsync" if cat == "gpu_memcpy" else "cudaLaunchKernel"
            yield _event("cpu_op", "aten::mm", call, 2, 1, **{"External id": number})
            yield _event("cuda_runtime", launch, call + 1, 1, 1, correlation=number)
            yield _event(cat, name, when, length, stream, correlation=number, stream=stream,
                         device=0, **{"External id": number}, **args)  # fmt: skip


def write_planted(folder: Path, steps: int, kernels: int, late_ms: float) -> None:
    """Two ranks, of which the second is late by ``late_ms`` in each step."""
    folder.mkdir(parents=True)
    for rank in (0, 1):
        info = {"backend": "nccl", "rank": rank, "world_size": 2}
        head = json.dumps({"schemaVersion": 1, "distributedInfo": info}, indent=1)[:-2]
        with (folder / f"rank{rank}.json").open("w") as file:
            file.write(f'{head},\n "traceEvents": [\n  ')
            for place, event in enumerate(events(steps, kernels, late_ms * rank)):
                file.write((",\n  " if place else "") + json.dumps(event))
            file.write('\n ],\n "traceName": "planted.json"\n}\n')
