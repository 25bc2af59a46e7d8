"""How ranks share the work of a step: `make` gives what computes the gradients of one."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from torch_training import models
from torch_training.models.network import Network
from torch_training.stamps import Stamps

Batch = Sequence[tuple[torch.Tensor, torch.Tensor]]  # inputs and targets of each micro-step


class Sharing:
    """Ranks that share nothing: each trains a network of its own.

    `module` computes the outputs; `parameters()` are what the optimiser updates.
    """

    by = "none"

    def __init__(self, params: dict[str, Any], network: Network, device: torch.device) -> None:
        """Keep the network, compiled where that is asked for."""
        self.params, self.network, self.device = params, network, device
        self.module = self.wrapped(network)
        if params["compile"]:
            self.module = torch.compile(self.module)

    def wrapped(self, network: Network) -> nn.Module:
        """Return what exchanges gradients in its backward pass: here the network as it is."""
        return network

    def parameters(self) -> list[nn.Parameter]:
        """Return what the optimiser updates."""
        return list(self.network.parameters())

    def attach(self, stamps: Stamps) -> None:
        """Have the stamps listen to what this rank waits for: to nothing here."""

    def exchanging(self, last: bool) -> AbstractContextManager[Any]:
        """Return the context of a micro-step, which exchanges gradients if it is the last."""
        return nullcontext()

    def outputs(self, inputs: torch.Tensor) -> torch.Tensor:
        """Compute logits, in the precision that is asked for."""
        mixed = self.params["precision"] == "mixed_bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=mixed):
            return self.module(inputs)

    def step(self, batch: Batch) -> torch.Tensor:
        """Add the gradients of the mean loss over all micro-steps; return that loss."""
        total = torch.zeros((), device=self.device)
        for number, (inputs, targets) in enumerate(batch, start=1):
            with self.exchanging(number == len(batch)):
                loss = models.loss(self.outputs(inputs), targets) / len(batch)
                loss.backward()
            total += loss.detach()
        return total

    def exchange(self) -> dict[str, Any] | None:
        """Return what ranks exchange in a step, for the record; None where they do not."""
        return None


def make(params: dict[str, Any], network: Network, mesh: Any, device: torch.device) -> Sharing:
    """Return what computes the gradients of a step, as `data_parallel` says."""
    from torch_training.ddp import DataParallel

    if params["data_parallel"] == "ddp" and params["ranks"] > 1:
        return DataParallel(params, network, device)
    return Sharing(params, network, device)
