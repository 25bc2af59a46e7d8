"""Importing traces of PyTorch's profiler: ranks, steps, exposed exchange, stragglers."""

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.kineto_stream import NoTraceError, RankTrace, read_stream
from scalesweep.analysis.profile import Profile
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.profiles.kineto import NOTE

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def event(kind: str, name: str, begin: float, length: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 7, "ts": begin, "dur": length,
            "args": args}  # fmt: skip


def allreduce(begin: float, length: float, number: int, **more: Any) -> dict[str, Any]:
    said = {"Collective name": "allreduce", "In msg nelems": 1_000_000, "dtype": "Float",
            "Group size": 2, "Process Group Description": "default_pg", "Seq": number}  # fmt: skip
    return event("kernel", NCCL, begin, length, **{**said, **more})


def text_of(events: Sequence[dict[str, Any]], rank: int = 0, world: int = 2) -> str:
    """A trace in Kineto's own layout."""
    info = {"backend": "nccl", "rank": rank, "world_size": world}
    head = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info}
    body = ",".join("\n  " + json.dumps(each, indent=2).replace("\n", "\n  ") for each in events)
    return (
        f"\n {json.dumps(head, indent=2)[:-2]},\n"
        f'    "traceEvents": [\n    {body}\n  ],\n  "traceName": "a/kineto.json"\n}}\n'
    )


def steps(late: float = 0.0, clock: float = 0.0, count: int = 4) -> list[dict[str, Any]]:
    """Steps of 1000 us: 600 of kernels, from 500 on an allreduce that ends at 800 on all ranks, a
    copy from 750 to 850. A rank that is late begins its exchange so much later."""
    events = [{"ph": "M", "name": "process_name", "ts": 0, "pid": 1, "args": {"name": '}, {"ph"'}}]
    for number in range(count):
        at = 1_000_000 + 1000 * number + clock
        events += [
            event("user_annotation", f"ProfilerStep#{number}", at, 1000),
            event("cpu_op", "aten::mm", at, 900),
            event("kernel", "gemm", at, 400),
            event("kernel", "gemm", at + 300, 300),
            event("cuda_runtime", "cudaLaunchKernel", at, 5),
            allreduce(at + 500 + late, 300 - late, number),
            event("gpu_memcpy", "Memcpy HtoD", at + 750, 100),
        ]
    return events


def write(folder: Path, *texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        with gzip.open(folder / f"rank{number}.pt.trace.json.gz", "wt") as file:
            file.write(text)
    return folder


def read_trace(text: str) -> RankTrace:
    return read_stream(io.BytesIO(text.encode()))


def one_of(folder: Path, *texts: str) -> Profile:
    source = read_source(write(folder, *texts))
    assert (source.refusals, source.others) == ([], [])
    (profile,) = source.profiles
    return profile


def test_steps_of_the_optimiser_end_on_the_gpu(tmp_path: Path) -> None:
    """The host is ahead from its second step on: its ends are 20 and 100 us apart, the GPU's 300,
    of which kernels take 240. Collectives have marks on the GPU, too."""
    events = []
    for number, (host, gpu) in enumerate(zip((480, 500, 600), (500, 800, 1100), strict=True)):
        name, own = "Optimizer.step#AdamW.step", {"External id": number + 1}
        events += [
            event("user_annotation", name, host - 10, 10, **own),
            event("kernel", "gemm", gpu - 240, 240),
            event("gpu_user_annotation", "nccl:all_reduce", gpu - 60, 200),
            event("gpu_user_annotation", name, gpu - 40, 40, **own),
            event("gpu_user_annotation", name, gpu - 60, 10, **own),  # another stream
        ]
    found = one_of(tmp_path / "one", text_of(events, world=1)).metrics
    assert found["step_time"]["value"] == pytest.approx(300e-6)
    assert found["computation"]["value"] == pytest.approx(480e-6)
    other = event("user_annotation", "Optimizer.step#Adam.step", 700, 10)
    two = one_of(tmp_path / "two", text_of([*events, other], world=1)).metrics
    assert "step_time" not in two  # two optimisers take turns


def test_stragglers_whose_clocks_differ(tmp_path: Path) -> None:
    """Rank 1 comes 150 us late by a clock that is 77 ms ahead."""
    profile = one_of(tmp_path, text_of(steps()), text_of(steps(150, 77_000), 1))
    first, second = profile.notes[NOTE]["late"]
    assert (first["rank"], second["rank"], second["calls"], second["members"]) == (0, 1, 4, "0-1")
    assert (first["late_median_ms"], second["late_median_ms"]) == pytest.approx((0.0, 0.15))
    assert (first["last_share"], second["last_share"]) == (0.0, 1.0)
    assert second["clock_ahead_ms"] == pytest.approx(77)
    assert not second["latest"]  # of four steps
    # The transfer is what the last rank to come takes: 4 MB in 150 us.
    (message,) = profile.messages
    assert (message.operation, message.size, message.count) == ("allreduce", 4_000_000, 4)
    assert message.mean_s == pytest.approx(150e-6)
    assert message.bus_bandwidth(2) == pytest.approx(4e6 / 150e-6)


def test_what_is_no_trace() -> None:
    with pytest.raises(NoTraceError, match="no list traceEvents"):
        read_trace('{"schemaVersion": 1, "traceEventz": []}')
    with pytest.raises(NoTraceError, match="what stands before traceEvents"):
        read_trace('{"schemaVersion": 1 "traceEvents": []}')


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("cuda_runtime", "cudaLaunchKernel", "starts kernels on GPUs and shows none"),
        ("mtia_ccp_events", "dma_request", "computes on MTIA"),
    ],
)
def test_a_device_whose_work_is_not_there(tmp_path: Path, kind: str, name: str, words: str) -> None:
    """Operations on the host are no computation; a rank's file that was cut leaves the others."""
    events = [event("cpu_op", "aten::mm", 0, 100), event(kind, name, 10, 5)]
    source = read_source(
        write(tmp_path, text_of(events), text_of(steps())[:-400], text_of(steps(), 1))
    )
    assert words in source.refusals[0].reason and "cut: its list" in source.refusals[1].reason
    assert [profile.profiled_ranks for profile in source.profiles] == [1]
    assert source.profiles[0].rank_times is None  # rank 0 is missing: no factors of all
