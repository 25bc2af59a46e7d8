"""The loop that takes steps. A step ends when its loss is known to the program."""

from typing import NamedTuple

import numpy as np
import torch

from harness import watch
from torch_training.inputs import Read
from torch_training.sharing import Sharing
from torch_training.stamps import HostClock, Stamps


class Taken(NamedTuple):
    """Of steps: seconds by name (`Stamps.arrays`), and losses, ``[step]``."""

    seconds: dict[str, np.ndarray]
    losses: np.ndarray


def take(
    sharing: Sharing,
    optimizer: torch.optim.Optimizer,
    read: Read,
    steps: int,
    stamps: Stamps | None = None,
) -> Taken:
    """Take steps: batch, gradients, update. Stamps that listen to nothing see the input alone.

    Reading the loss waits for a GPU, and for the update in it, which was enqueued before.
    """
    stamps = stamps or Stamps(HostClock())
    losses = np.empty(steps)
    try:
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
    finally:
        stamps.leave()
    return Taken(stamps.arrays(), losses)
