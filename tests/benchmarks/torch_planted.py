"""Helper of test_torch_spans: train with faults that are planted in the program under test.

``torch_planted.py FOLDER RANK RANKS PARAMETERS``, by a Python with PyTorch; parameters
in JSON, of torch_training. Of each case of each layout rank 0
writes ``FOLDER/<layout>-<case>.npz``: the arrays ``[step, rank]`` that a training program keeps,
and `planted[step, rank]`, the seconds that each rank slept as its own clock saw them.
"""

import json
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow" / "benchmarks"))

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from harness import torch_ranks
from torch_training import inputs, models, sharing, stamps

STEPS, WARM, DELAY_S, MICRO = 8, 2, 0.08, 4
NONE, STRAGGLER, READER, NETWORK, BACKWARD = "none", "straggler", "reader", "network", "backward"
COPY = "copy"
# Of the benchmark's own program.
PARAMETERS = json.loads(sys.argv[4]) | {
    "model": "mlp",
    "width": 32,
    "batch_size": 4 * 4,
    "ranks": 2,
}


class Fault:
    """Sleeps where it is planted, and counts the seconds of each step."""

    def __init__(self, case, rank):
        self.case = case
        self.late = rank == 1
        self.kept, self.slept = [], 0.0
        self.lock = threading.Lock()  # an exchange is late in a thread of its own

    def sleep(self, place, share=1.0):
        everywhere = place in (READER, NETWORK)
        if place == self.case and (self.late or everywhere):
            began = time.perf_counter()
            time.sleep(DELAY_S * share)
            with self.lock:
                self.slept += time.perf_counter() - began

    def end(self):
        with self.lock:
            self.kept.append(self.slept)
            self.slept = 0.0


class Slow(nn.Module):
    """A module that is late in its forward pass, and in its backward pass."""

    def __init__(self, module, fault, share=1.0):
        super().__init__()
        self.module, self.fault, self.share = module, fault, share

    def forward(self, x):
        self.fault.sleep(STRAGGLER, self.share)
        y = self.module(x)
        if y.requires_grad:
            y.register_hook(lambda gradient: self.fault.sleep(BACKWARD, self.share))
        return y


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))


def plain(module, mine):
    def step(x):
        with mine.doing(stamps.FORWARD):
            loss = module(x).pow(2).mean()
        loss.backward()

    return step


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.01)


def ddp(fault, mine):
    """DDP; with a network that is late, the reduction begins later, in a thread of its own."""
    module = DistributedDataParallel(Slow(net(), fault))

    def late(state, bucket):
        result = torch.futures.Future()

        def exchange():
            fault.sleep(NETWORK)
            dist.all_reduce(bucket.buffer())
            result.set_result(bucket.buffer().div_(dist.get_world_size()))

        threading.Thread(target=exchange).start()
        return result

    if fault.case == NETWORK:
        module.register_comm_hook(None, late)
    mine.of_ddp(module)
    return module, plain(module, mine)


def accumulated(fault, mine):
    """DDP with two micro-steps, checkpointed layers and a late exchange."""
    inner = Slow(net(), fault, 0.5)

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=False)

    module = DistributedDataParallel(Checkpointed())

    def step(x):
        with module.no_sync():
            plain(module, mine)(x)
        plain(module, mine)(x)

    mine.of_ddp(module)
    return module, step


def fsdp2(fault, mine):
    """FSDP2; with late copies, weights gathered for the forward pass are laid out late."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    module = net()
    for layer in (module[0], module[2]):
        fully_shard(layer, mesh=mesh)
    module = Slow(module, fault)
    fully_shard(module, mesh=mesh)
    copied = _fsdp_param_group.foreach_all_gather_copy_out

    def late(*args):
        copied(*args)
        if torch._C._current_graph_task_id() < 0:  # not in a backward pass
            fault.sleep(COPY, 0.5)

    if fault.case == COPY:
        mock.patch.object(_fsdp_param_group, copied.__name__, late).start()
    mine.of_fsdp2()
    return module, plain(module, mine)


def tensors(fault, mine):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    split = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    module = Slow(parallelize_module(net(), mesh, split), fault)
    mine.of_tensor_parallel()
    return module, plain(module, mine)


def pipeline(fault, mine):
    """Stages of the benchmark's own, of which the second, on rank 1, is late."""
    ranks = dist.get_world_size()
    params = PARAMETERS | {"pp": ranks, "layers": ranks, "micro_batches": MICRO}
    network = models.build(params)
    models.initialise(network, params["seed"])
    network.blocks[1] = Slow(network.blocks[1], fault, 1 / MICRO)
    device = torch.device("cpu")
    shared = sharing.make(params, network, dist.get_rank(), device)
    shared.attach(mine)
    read = inputs.make(params, None, inputs.Place(0, 1), device)
    return shared, lambda _: shared.step(read())


def compiled(fault, mine, **layout):
    """The benchmark's own network, compiled, which has the loss of one that is not."""
    device, losses = torch.device("cpu"), []

    def build(compile):
        params = PARAMETERS | {"layers": 2, "compile": compile} | layout
        network = models.build(params)
        models.initialise(network, params["seed"])
        read = inputs.make(params, None, inputs.Place(0, 1), device)
        return sharing.make(params, network, dist.get_rank(), device), read

    plain_one, read = build(False)
    expected = plain_one.step(read()).item()
    # As torch.compile cuts the network, without the seconds of a C++ compiler.
    with mock.patch.object(torch, "compile", partial(torch.compile, backend="aot_eager")):
        shared, _ = build(True)
    compute = shared.computes[0]

    def late(x):
        fault.sleep(STRAGGLER)
        return compute(x)

    def step(_):
        losses.append(shared.step(read()).item())
        np.testing.assert_allclose(losses[0], expected, rtol=1e-5)

    shared.computes = [late]
    shared.attach(mine)
    return shared, step


def compiled_tensors(fault, mine):
    return compiled(fault, mine, tp=dist.get_world_size())


CASES = {
    "ddp": (ddp, (NONE, STRAGGLER, READER, NETWORK)),
    "accumulated": (accumulated, (BACKWARD,)),
    "fsdp2": (fsdp2, (STRAGGLER, COPY)),
    "tensors": (tensors, (STRAGGLER,)),
    "pipeline": (pipeline, (STRAGGLER, BACKWARD)),
    "compiled_ddp": (compiled, (STRAGGLER,)),
    "compiled_tensors": (compiled_tensors, (STRAGGLER,)),
}


def run(make, case):
    """Take steps with a fault; return arrays by name, ``[step]``."""
    fault = Fault(case, dist.get_rank())
    mine = stamps.Stamps(stamps.HostClock())
    module, step = make(fault, mine)
    optimizer = sgd(module)
    mine.attach(optimizer)
    for number in range(WARM + STEPS):
        if number == WARM:
            mine.arrays()
            fault.kept.clear()
        mine.begin()
        fault.sleep(READER)
        x = torch.randn(4 * MICRO, 32)
        mine.fed()
        step(x)
        optimizer.step()
        optimizer.zero_grad()
        mine.end()
        fault.end()
    mine.close()
    mock.patch.stopall()
    assert not mine.lacking, mine.lacking
    return mine.arrays() | {"planted": np.array(fault.kept)}


def gathered(mine):
    """Arrays ``[step, rank]`` of all ranks."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, mine)
    return {name: np.stack([each[name] for each in every], axis=1) for name in mine}


class Stream:
    """A stream of a GPU that is behind its host: what is enqueued takes time there only."""

    def __init__(self):
        self.enqueued_s, self.done_s = 0.0, 0.0

    def work(self, seconds):
        self.enqueued_s += seconds

    def wait_event(self, event):
        self.enqueued_s = max(self.enqueued_s, event.at)


class Cuda:
    """What `StreamClock` needs of `torch.cuda`, on made up streams."""

    def __init__(self):
        self.Stream = Stream
        self.stream = self.own = Stream()
        self.made = 0
        cuda = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing
                cuda.made += 1

            def record(self, stream):
                self.stream, self.at = stream, stream.enqueued_s

            def query(self):
                return self.at <= self.stream.done_s

            def synchronize(self):
                self.stream.done_s = max(self.stream.done_s, self.at)

            def elapsed_time(self, other):
                assert self.query() and other.query(), "times of events that are not over"
                return 1e3 * (other.at - self.at)

        self.Event = Event

    def current_stream(self):
        return self.stream


def finalize_backward(cuda, exchanging):
    """FSDP2's own method: the stream that computes waits for gradients of another one."""
    event = cuda.Event(enable_timing=True)
    event.record(exchanging)
    cuda.made -= 1  # not of the stamps
    group = SimpleNamespace(
        comm_ctx=SimpleNamespace(_last_post_reduce_events={0: event}), device_handle=cuda,
        fsdp_params=[], _all_gather_result=None, _post_forward_indices=[],
    )  # fmt: skip
    _fsdp_param_group.FSDPParamGroup.finalize_backward(group)


def on_a_made_up_gpu():
    """Seconds of three steps whose work is known; the host never waits for the stream."""
    cuda = Cuda()
    mine = stamps.Stamps(stamps.StreamClock(cuda))
    mine.attach(sgd(net()))
    mine.of_fsdp2()
    began = time.perf_counter()
    for number in range(3):
        cuda.own.work(0.5)  # between
        mine.begin()
        cuda.own.work(1.0)
        mine.fed()
        mine.phase(stamps.FORWARD)
        cuda.own.work(2.0)
        cuda.stream = Stream()  # an exchange on a stream of its own: not what computes
        with mine.waiting(stamps.DATA_PARALLEL):
            cuda.stream.work(100.0)
        exchanging, cuda.stream = cuda.stream, cuda.own
        cuda.own.work(8.0 + number)
        mine.phase(stamps.BACKWARD)
        cuda.own.work(16.0)
        exchanging.enqueued_s = cuda.own.enqueued_s + 4.0
        finalize_backward(cuda, exchanging)
        mine.phase(stamps.OPTIMIZER)
        cuda.own.work(32.0)
        mine.phase(stamps.REST)
        cuda.own.work(64.0)
        mine.end()
        assert not mine._rows or number == 2, "a step was read before its stream had come there"
        if number == 1:  # the stream catches up with the host
            cuda.own.done_s = cuda.own.enqueued_s
    host = time.perf_counter() - began
    arrays = {name: values.tolist() for name, values in mine.arrays().items()}
    mine.close()
    return arrays | {"host_s": host, "events": cuda.made, "method": mine.notes(3)["method"]}


def main():
    folder, rank, ranks = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
    if rank == 0:
        (folder / "gpu.json").write_text(json.dumps(on_a_made_up_gpu()))
    for layout, (make, faults) in CASES.items():
        for case in faults:
            every = gathered(run(make, case))
            if rank == 0:
                np.savez(folder / f"{layout}-{case}.npz", **every)
    torch_ranks.end(0)


if __name__ == "__main__":
    main()
