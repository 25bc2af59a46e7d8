"""What a rank exchanges in a step: each message is counted, and waiting for it told to stamps."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE = "data_parallel", "tensor_parallel", "pipeline_wait"

Waiting = Callable[[str], AbstractContextManager[None]]


def _without_stamps(_: str) -> AbstractContextManager[None]:
    return nullcontext()


class Traffic:
    """The messages of the newest step, in bytes by what they are for.

    ``waiting(kind)`` is the context in which a rank waits for others: that of the stamps, if any.
    """

    def __init__(self) -> None:
        """Count from zero, without stamps."""
        self.messages: dict[str, list[int]] = {}
        self.waiting: Waiting = _without_stamps

    def begin_step(self) -> None:
        """Forget the messages of the step before."""
        self.messages = {}

    def count(self, what: str, tensor: torch.Tensor) -> None:
        """Count a message by the bytes of its tensor."""
        self.messages.setdefault(what, []).append(tensor.numel() * tensor.element_size())
