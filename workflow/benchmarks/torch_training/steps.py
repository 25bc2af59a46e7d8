"""The loop that takes and times steps. A step ends when its loss is known to the program."""

import time
from typing import NamedTuple

import numpy as np
import torch

from harness import watch
from torch_training.inputs import Read
from torch_training.sharing import Sharing


class Taken(NamedTuple):
    """Of steps: seconds and losses, ``[step]``."""

    times: np.ndarray
    losses: np.ndarray


def take(sharing: Sharing, optimizer: torch.optim.Optimizer, read: Read, steps: int) -> Taken:
    """Take steps: batch, gradients, update.

    Reading the loss waits for a GPU, and for the update in it, which was enqueued before.
    """
    times, losses = np.empty(steps), np.empty(steps)
    clock = time.perf_counter
    for number in range(steps):
        began = clock()
        loss = sharing.step(read())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses[number] = loss.item()
        times[number] = clock() - began
        watch.advance()
    return Taken(times, losses)
