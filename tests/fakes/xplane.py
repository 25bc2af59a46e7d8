"""Traces of TensorFlow's profiler, written by its own messages (xplane.proto)."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MS = 10**9  # picoseconds
# By plane and line: name, begin and length of each event in ms.
Trace = Mapping[tuple[str, str], Sequence[tuple[str, float, float]]]


def messages() -> Any:
    """The module of the messages, without an import of all of TensorFlow."""
    package = importlib.util.find_spec("tensorflow")
    file = Path(package.origin).parent / "tsl/profiler/protobuf/xplane_pb2.py"
    spec = importlib.util.spec_from_file_location("xplane_pb2", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


XSpace = messages().XSpace


def xspace(trace: Trace, begin_ns: int = 0) -> bytes:
    """A whole file, with fields that a reader has to skip (ids, statistics, a double). An event's
    name may end with ``<- NODE:TYPE``: the operation that started it."""
    space = XSpace(hostnames=["host"])
    for name in dict.fromkeys(name for name, _ in trace):
        plane = space.planes.add(id=1, name=name)
        plane.stat_metadata[4].id, plane.stat_metadata[4].name = 4, "tf_op"
        names: dict[str, int] = {}
        for line, events in ((line, of) for (owner, line), of in trace.items() if owner == name):
            kept = plane.lines.add(id=7, name=line, timestamp_ns=begin_ns)
            for title, begin, length in events:
                kind, _, operation = title.partition(" <- ")
                number = names.setdefault(kind, len(names) + 1)
                described = plane.event_metadata[number]
                described.id, described.name = number, kind
                event = kept.events.add(metadata_id=number, offset_ps=round(begin * MS))
                event.duration_ps = round(length * MS)
                if operation:
                    referred = 100 + names.setdefault(operation, len(names) + 1)
                    described = plane.stat_metadata[referred]
                    described.id, described.name = referred, operation
                    event.stats.add(metadata_id=4, ref_value=referred)
                event.stats.add(metadata_id=3, double_value=0.5)
    return bytes(space.SerializeToString())


STEP = "EagerLocalExecute: __inference_step_42"


def on_cpu(steps: int = 4) -> Trace:
    """Steps of 10 ms: 1 of input, 6 of computation on two threads, 3 in which nothing shows."""
    python, first, second = [("ThreadpoolListener::Region", 0.0, 99.0)], [], []
    data = [("add:AddV2", 0.0, 99.0)]
    for number in range(steps):
        at = 10.0 * number
        python += [("EagerLocalExecute: IteratorGetNext", at, 1.0), (STEP, at + 1, 9.0)]
        first += [
            ("model/conv/Conv2D:Conv2D", at + 1, 4.0),
            ("ReadVariableOp:ReadVariableOp", at + 4, 2.0),
        ]
        second += [
            ("gradient/MatMul:_MklMatMul", at + 3, 4.0),
            ("ExecutorState::Process", at, 10.0),
        ]
    return {
        ("/host:CPU", "python"): python, ("/host:CPU", "tf_Compute/1"): first,
        ("/host:CPU", "tf_Compute/2"): second, ("/host:CPU", "tf_data_private/3"): data,
    }  # fmt: skip


def on_gpu(steps: int = 4) -> Trace:
    """The same, computed on a GPU: 6 ms of kernels, an allreduce of 4 that they hide half of."""
    host = on_cpu(steps)
    kernels, nccl, derived = [], [], [("Conv2D", 0.0, 99.0)]
    for number in range(steps):
        at = 10.0 * number
        kernels += [
            ("ampere_sgemm_128x64 <- gradient_tape/model/conv/Conv2D:Conv2DBackpropInput",
             at + 1, 6.0),
            ("MemcpyD2H <- loss/Mean:Mean", at + 9, 0.5),
        ]  # fmt: skip
        nccl += [("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 5, 4.0)]
    return {
        **host,
        ("/device:GPU:0 NVIDIA", "Stream #14(Compute)"): kernels,
        ("/device:GPU:0 NVIDIA", "Stream #20"): nccl,
        ("/device:GPU:0 NVIDIA", "TensorFlow Ops"): derived,
    }
