"""Helper of test_torch_layouts: train on four ranks in many layouts, in one process a rank.

``torch_layouts.py FOLDER STEPS CASE...`` on every rank; a CASE is JSON, all parameters. Rank 0
writes ``FOLDER/<number of the case>.json``: `mesh` and of each rank in `ranks` its `losses`,
`exchange`, `parameters`, `bytes`, and `seconds` by name (sums over the steps after the first). In a
case with `late` rank 1 sleeps in the forward pass of these steps, `slept` seconds in all. One with
``"place": [i, n]`` trains on share i of n, one with `data` from that folder.
It also writes ``FOLDER/gpu.json``, seconds by name of steps on a made-up stream of a GPU.
"""

import json
import sys
import time
from pathlib import Path
from unittest import mock

import torch

from harness import ranks

ranks.use("torch")

from torch_training import benchmark, inputs, stamps
from torch_training.models.network import Network

DELAY_S = 0.5


class Stream:
    """A stream of a GPU that is behind its host: what is enqueued takes time there only."""

    enqueued_s = done_s = 0.0

    def work(self, seconds):
        self.enqueued_s += seconds


class Cuda:
    """What stamps need of `torch.cuda`, on made-up streams."""

    def __init__(self):
        self.stream = Stream()

    def current_stream(self):
        return self.stream

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self, stream):
            self.stream, self.at = stream, stream.enqueued_s

        def synchronize(self):
            assert self.at <= self.stream.done_s, "the host waits for the stream"

        def elapsed_time(self, other):
            self.synchronize()
            other.synchronize()
            return 1e3 * (other.at - self.at)


def on_a_made_up_gpu():
    """Seconds of three steps whose work is known; the host waits for the loss alone."""
    cuda = Cuda()
    own, computing = stamps.Stamps(cuda), cuda.stream
    own.of_ddp()
    for number in range(3):
        computing.work(0.5)  # between
        own.begin()
        computing.work(1.0)
        own.phase(stamps.REST)
        own.phase(stamps.FORWARD)
        computing.work(2.0)
        cuda.stream = Stream()  # an exchange on a stream of its own: not what computes
        with own.waiting(stamps.DATA_PARALLEL):
            cuda.stream.work(100.0)
        cuda.stream = computing
        computing.work(8.0 + number)
        own.phase(stamps.BACKWARD)
        with own.waiting(stamps.DATA_PARALLEL):
            computing.work(4.0)
        computing.work(16.0)
        computing.done_s = computing.enqueued_s  # where the loss is read
        own.end()
    return {name: values.tolist() for name, values in own.arrays().items()}


def late(passes):
    """Have rank 1 sleep in forward passes, of which a step has so many, from the second step on;
    return what undoes it, and a list of the seconds."""
    slept, forward = [], Network.forward

    def sleeping(*args, **kwargs):
        if ranks.rank() == 1:
            began = time.perf_counter()
            time.sleep(DELAY_S / passes if len(slept) >= passes else 0)
            slept.append(time.perf_counter() - began)
        return forward(*args, **kwargs)

    return mock.patch.object(Network, "forward", sleeping), slept


def train(params, steps_taken):
    planted, slept = late(params["micro_batches"] if params["pp"] > 1 else 1)
    if params.pop("late", False):
        with planted:
            report, shared = take(params, steps_taken)
        return report | {"slept": sum(slept)}, shared
    return take(params, steps_taken)


def take(params, steps_taken):
    share = params.pop("place", None)
    data = Path(params.pop("data")) if "data" in params else None
    device = torch.device("cpu")
    shared, optimizer = benchmark.build(params, device)
    mesh = shared.mesh
    share = share or (mesh.data_rank(ranks.rank()), mesh.data_ranks)
    read = inputs.make(params, data, share, device)
    taken = benchmark.take(shared, optimizer, read, steps_taken)
    return {
        **shared.about(),
        "losses": taken.pop("loss").tolist(),
        "exchange": shared.wrapping.exchange(shared.module),
        "seconds": {name: float(array[1:].sum()) for name, array in taken.items()},
    }, shared


def main():
    folder, steps_taken = Path(sys.argv[1]), int(sys.argv[2])
    ranks.start(4, 1, 1)
    if ranks.rank() == 0:
        (folder / "gpu.json").write_text(json.dumps(on_a_made_up_gpu()))
    for number, text in enumerate(sys.argv[3:]):
        own, shared = train(json.loads(text), steps_taken)
        every = ranks.gather_json(own)
        if ranks.rank() == 0:
            report = {"ranks": every, "mesh": shared.mesh._asdict()}
            (folder / f"{number}.json").write_text(json.dumps(report))
    ranks.stop()
    ranks.end(0)


if __name__ == "__main__":
    main()
