"""Traces of TensorFlow's profiler, written as it writes them (xplane.proto)."""

from collections.abc import Mapping, Sequence

MS = 10**9  # picoseconds
# By plane and line: name, begin and length of each event in ms.
Trace = Mapping[tuple[str, str], Sequence[tuple[str, float, float]]]


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(number: int, value: int | bytes | str) -> bytes:
    """A field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def xspace(trace: Trace, begin_ns: int = 0) -> bytes:
    """A whole file, with fields that a reader has to skip (ids, statistics, a double).

    An event's name may end with ``<- NODE:TYPE``: the operation that started it.
    """
    found = b""
    for plane in dict.fromkeys(name for name, _ in trace):
        names: dict[str, int] = {}
        operations: dict[str, int] = {"tf_op": 4}
        lines = b""
        for (owner, line), events in trace.items():
            if owner != plane:
                continue
            content = field(1, 7) + field(2, line) + field(3, begin_ns)
            for title, begin, length in events:
                name, _, operation = title.partition(" <- ")
                number = names.setdefault(name, len(names) + 1)
                event = (
                    field(1, number) + field(2, round(begin * MS)) + field(3, round(length * MS))
                )
                statistic = field(1, 3) + varint(2 << 3 | 1) + b"\0" * 8
                if operation:
                    referred = operations.setdefault(operation, len(operations) + 10)
                    event += field(4, field(1, 4) + field(7, referred))
                content += field(4, event + field(4, statistic))
            lines += field(3, content)
        metadata = b"".join(
            field(4, field(1, number) + field(2, field(1, number) + field(2, name)))
            for name, number in names.items()
        )
        metadata += b"".join(
            field(5, field(1, number) + field(2, field(1, number) + field(2, name)))
            for name, number in operations.items()
        )
        # Names come behind the lines that use them.
        found += field(1, field(1, 1) + field(2, plane) + lines + metadata)
    return found + field(4, "host")


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
