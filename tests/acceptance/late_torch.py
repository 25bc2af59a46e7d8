"""Helper of test_planted_runs: torch_training, whose program is unchanged, with faults.

``late_torch.py BENCHMARKS torch_training --run FILE``, by a Python with PyTorch, does what
``BENCHMARKS torch_training --run FILE`` does, and is late in the timed steps of several ranks as
``PLANTED`` says in the environment: ``forward 1 80`` is a place (forward, input), a rank, and ms of
a step.
"""

import os
import runpy
import sys
import time

KIND, RANK, MS = os.environ["PLANTED"].split()
HERE = os.environ.get("WORLD_SIZE", "1") != "1" and os.environ["RANK"] == RANK


class Fault:
    """Sleeps in the timed steps."""

    timed = False

    def sleep(self, kind):
        if HERE and self.timed and kind == KIND:
            time.sleep(float(MS) / 1e3)


def before(owner, name, act):
    """Have a method of ``owner`` do something first, with the same arguments."""
    call = getattr(owner, name)

    def acting(*args, **kwargs):
        act(*args, **kwargs)
        return call(*args, **kwargs)

    setattr(owner, name, acting)


def plant(fault):
    """Put the fault into torch_training."""
    from torch_training import benchmark
    from torch_training.inputs import Samples
    from torch_training.models.network import Network

    def take(_self, kind, _number):
        fault.timed = kind == "timed"

    before(benchmark.Program, "take", take)
    before(Samples, "__getitem__", lambda *_: fault.sleep("input"))
    before(Network, "forward", lambda *_: fault.sleep("forward"))


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, sys.argv[0])
    plant(Fault())
    runpy.run_path(sys.argv[0], run_name="__main__")
