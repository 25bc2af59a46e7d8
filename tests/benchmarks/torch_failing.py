"""torch_training in which rank 1 fails in a forward pass: ``torch_failing.py HOW [--run FILE]``.

Meanwhile the other ranks wait for it, in a collective or in a pipeline.
"""

import itertools
import os
import sys

import torch

from harness.frame import run_benchmark

HOW = sys.argv[1]
RANK = int(os.environ["RANK"])
LATE = 12  # of the calls of linear layers
calls = itertools.count(1)


def loops():
    """Compute for ever."""
    while True:
        torch.ones(8).sum()


def fail(module, *_):
    """Fail where it is time."""
    if not isinstance(module, torch.nn.Linear) or next(calls) != LATE or RANK != 1:
        return
    match HOW:
        case "loops":
            loops()
        case "asserts":
            assert module is None, "the loss is not finite"
        case "leaves":
            os._exit(0)


torch.nn.modules.module.register_module_forward_pre_hook(fail)
sys.exit(run_benchmark("torch_training", sys.argv[2:]))
