"""Helper of test_torch_spans: train with faults that are planted in the program under test.

``torch_planted.py FOLDER RANK RANKS``, by a Python with PyTorch. Of each case of each layout rank 0
writes ``FOLDER/<layout>-<case>.npz``: the arrays ``[step, rank]`` that a training program keeps,
and `planted[step, rank]`, the seconds that each rank slept as its own clock saw them.
"""

import json
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow" / "benchmarks"))

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from harness import torch_ranks
from torch_training import stamps

STEPS, WARM, DELAY_S, MICRO = 12, 3, 0.04, 4
NONE, STRAGGLER, READER, NETWORK, BACKWARD = "none", "straggler", "reader", "network", "backward"


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


def net(norm=False):
    torch.manual_seed(0)
    layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)]
    return nn.Sequential(*layers, *([nn.BatchNorm1d(32)] if norm else []))


def plain(module):
    return lambda x: module(x).pow(2).mean().backward()


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.01)


def ddp(fault, norm=False):
    """DDP; with a network that is late, the result of the reduction comes later."""
    module = DistributedDataParallel(Slow(net(norm), fault))

    def late(state, bucket):
        reduced = dist.all_reduce(bucket.buffer(), async_op=True).get_future()

        def then(future):
            fault.sleep(NETWORK)
            return future.value()[0].div_(dist.get_world_size())

        return reduced.then(then)

    if fault.case == NETWORK:
        module.register_comm_hook(None, late)
    return module, plain(module), lambda each: each.of_ddp(module)


def ddp_norm(fault):
    """DDP whose buffers rank 0 broadcasts before each forward pass."""
    return ddp(fault, norm=True)


def accumulated(fault):
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
            plain(module)(x)
        plain(module)(x)

    return module, step, lambda each: each.of_ddp(module)


def fsdp2(fault):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    module = net()
    for layer in (module[0], module[2]):
        fully_shard(layer, mesh=mesh)
    module = Slow(module, fault)
    fully_shard(module, mesh=mesh)
    return module, plain(module), lambda each: each.of_fsdp2()


def tensors(fault):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    split = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    module = Slow(parallelize_module(net(), mesh, split), fault)
    return module, plain(module), lambda each: each.of_tensor_parallel()


def pipeline(fault, schedule=Schedule1F1B):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    module = Slow(net(), fault, 1 / MICRO)
    stage = PipelineStage(module, rank, ranks, torch.device("cpu"))
    schedule = schedule(stage, MICRO, loss_fn=lambda y, x: (y - x).pow(2).mean())

    def step(x):
        if rank == 0:
            schedule.step(x)
        elif rank == ranks - 1:
            schedule.step(target=x)
        else:
            schedule.step()

    return module, step, lambda each: each.of_pipeline()


def gpipe(fault):
    return pipeline(fault, ScheduleGPipe)


CASES = {
    "ddp": (ddp, (NONE, STRAGGLER, READER, NETWORK)),
    "ddp_norm": (ddp_norm, (STRAGGLER,)),
    "accumulated": (accumulated, (BACKWARD,)),
    "fsdp2": (fsdp2, (NONE, STRAGGLER, BACKWARD)),
    "tensors": (tensors, (STRAGGLER,)),
    "pipeline": (pipeline, (NONE, STRAGGLER)),
    "gpipe": (gpipe, (BACKWARD,)),
}


def run(make, case):
    """Take steps with a fault; return arrays by name, ``[step]``."""
    fault = Fault(case, dist.get_rank())
    module, step, listen = make(fault)
    optimizer = sgd(module)
    mine = stamps.Stamps(stamps.HostClock())
    mine.attach(optimizer)
    listen(mine)
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


class Cuda:
    """What `StreamClock` needs of `torch.cuda`, on made up streams."""

    def __init__(self):
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
        cuda.own.work(2.0)
        with mine.waiting(stamps.DATA_PARALLEL):
            cuda.own.work(4.0)
            cuda.stream = Stream()  # an exchange on a stream of its own: not what computes
            with mine.waiting(stamps.PIPELINE):
                cuda.stream.work(100.0)
            cuda.stream = cuda.own
        cuda.own.work(8.0 + number)
        mine.phase(stamps.BACKWARD)
        cuda.own.work(16.0)
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


def on_another_version(folder):
    """What is kept where PyTorch lacks a name, and that nothing stays replaced."""
    before = torch.autograd.backward, dist.Work.wait
    mine = stamps.Stamps(stamps.HostClock())
    module = net()
    mine.attach(sgd(module))
    mine.of_ddp(module)  # no DDP: as in a version whose DDP has no such method
    mine.begin()
    mine.fed()
    plain(module)(torch.randn(4, 32))
    mine.end()
    mine.close()
    restored = before == (torch.autograd.backward, dist.Work.wait)
    return {
        "arrays": sorted(mine.arrays()), "notes": mine.notes(1), "restored": restored,
    }  # fmt: skip


def main():
    folder, rank, ranks = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
    if rank == 0:
        made = {"gpu": on_a_made_up_gpu(), "version": on_another_version(folder)}
        (folder / "made.json").write_text(json.dumps(made))
    for layout, (make, cases) in CASES.items():
        for case in cases:
            every = gathered(run(make, case))
            if rank == 0:
                np.savez(folder / f"{layout}-{case}.npz", **every)
    torch_ranks.end(0)


if __name__ == "__main__":
    main()
