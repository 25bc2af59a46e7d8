"""How data-parallel ranks keep the same weights; without a subclass each has weights of its own."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from torch_training.models.network import Network
from torch_training.stamps import Stamps
from torch_training.traffic import Traffic


@dataclass
class Wrapping:
    """Ranks that exchange no gradients, and what the run asks of them."""

    by: ClassVar[str] = "none"
    params: dict[str, Any]
    device: torch.device
    traffic: Traffic

    def wrapped(self, network: Network) -> nn.Module:
        """Return what exchanges gradients in its backward pass: here the network as it is."""
        return network

    def exchanging(self, module: Any, last: bool) -> AbstractContextManager[Any]:
        """Return the context of a micro-step, which exchanges gradients if it is the last."""
        return nullcontext()

    def attach(self, module: Any, stamps: Stamps) -> None:
        """Have stamps told of what this rank waits for in a module: of nothing here."""

    def exchange(self, modules: Sequence[Any]) -> dict[str, Any] | None:
        """Return what the rank exchanges in a step, for the record; None for nothing."""
        return None
