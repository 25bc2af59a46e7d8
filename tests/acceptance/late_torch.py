"""Helper of test_planted_runs: torch_training, whose program is unchanged, with faults.

``late_torch.py BENCHMARKS torch_training --run FILE``, by a Python with PyTorch, does what
``BENCHMARKS torch_training --run FILE`` does, and is late in the timed steps of several ranks as
``PLANTED`` says in the environment: ``forward 1 80`` is a place (forward, input, exchange), a rank
or ``all``, and ms of a step.
"""

import os
import runpy
import sys
import threading
import time

KIND, WHO, MS = os.environ["PLANTED"].split()
SEVERAL = os.environ.get("WORLD_SIZE", "1") != "1"
HERE = SEVERAL and WHO in ("all", os.environ["RANK"])


class Fault:
    """Sleeps in the timed steps, ``passes`` times in each."""

    timed, passes = False, 1

    def sleep(self, kind):
        if HERE and self.timed and kind == KIND:
            time.sleep(float(MS) / 1e3 / self.passes)


def before(owner, name, act):
    """Have a function or method of ``owner`` do something first, with the same arguments."""
    call = getattr(owner, name)

    def acting(*args, **kwargs):
        act(*args, **kwargs)
        return call(*args, **kwargs)

    setattr(owner, name, acting)


def plant(fault):
    """Put the fault into torch_training, and into the exchange of PyTorch's DDP."""
    import torch

    from torch_training import benchmark, ddp, pipeline
    from torch_training.loader import Samples
    from torch_training.models.network import Network

    def build(params, *_):
        fault.passes = pipeline.micro_batches(params) if params["pp"] > 1 else 1

    def take(_self, kind, _number):
        fault.timed = kind == "timed"

    before(benchmark, "build", build)
    before(benchmark.Program, "take", take)
    before(Samples, "__getitems__", lambda *_: fault.sleep("input"))
    before(Network, "forward", lambda *_: fault.sleep("forward"))

    class Exchanging(ddp.DistributedDataParallel):
        """DDP whose communication hook ends later than the exchange."""

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.register_comm_hook(self.process_group, exchanged)

    def exchanged(group, bucket):
        work = torch.distributed.all_reduce(bucket.buffer(), group=group, async_op=True)
        reduced = torch.futures.Future()

        def finish():
            work.wait()
            fault.sleep("exchange")
            reduced.set_result(bucket.buffer().div_(group.size()))

        threading.Thread(target=finish).start()
        return reduced

    if KIND == "exchange":
        ddp.DistributedDataParallel = Exchanging


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, sys.argv[0])
    plant(Fault())
    runpy.run_path(sys.argv[0], run_name="__main__")
