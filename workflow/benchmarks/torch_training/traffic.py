"""What a rank exchanges in a step: each message is counted, and waiting for it told to stamps."""

import torch

from torch_training.stamps import HostClock, Stamps


class Traffic:
    """The messages of the newest step, in bytes by what they are for.

    `stamps` are told what the rank does, and when it waits for others; before any are attached, it
    tells those that no step begins.
    """

    def __init__(self) -> None:
        """Count from zero, without stamps."""
        self.messages: dict[str, list[int]] = {}
        self.stamps = Stamps(HostClock())

    def begin_step(self) -> None:
        """Forget the messages of the step before."""
        self.messages = {}

    def count(self, what: str, tensor: torch.Tensor) -> None:
        """Count a message by the bytes of its tensor."""
        self.messages.setdefault(what, []).append(tensor.numel() * tensor.element_size())
