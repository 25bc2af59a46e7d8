"""The loop that takes steps. A step ends when its loss is known to the program."""

from typing import NamedTuple

import numpy as np
import torch

from harness import watch
from torch_training.inputs import Read
from torch_training.whole import Sharing


class Taken(NamedTuple):
    """Of steps: seconds by name (`Stamps.arrays`), and losses, ``[step]``."""

    seconds: dict[str, np.ndarray]
    losses: np.ndarray


def take(sharing: Sharing, optimizer: torch.optim.Optimizer, read: Read, steps: int) -> Taken:
    """Take steps: batch, gradients, update.

    Reading the loss waits for a GPU, and for the update in it, which was enqueued before.
    """
    stamps = sharing.stamps
    losses = np.empty(steps)
    for number in range(steps):
        stamps.begin()
        batch = read()
        stamps.fed()
        loss = sharing.step(batch)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses[number] = loss.item()
        stamps.end()
        watch.advance()
    return Taken(stamps.arrays(), losses)
