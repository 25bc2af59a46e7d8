"""A step in which a rank computes the whole network, or its part of each layer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from torch_training import models
from torch_training.data_parallel import Wrapping
from torch_training.mesh import Mesh
from torch_training.models.network import Network
from torch_training.stamps import BACKWARD, FORWARD, REST
from torch_training.tensor_parallel import held

Batch = Sequence[tuple[torch.Tensor, torch.Tensor]]  # inputs and targets of each micro-step


class Sharing:
    """What computes the gradients of a step on this rank: `module`, its part of the network."""

    def __init__(
        self, params: dict[str, Any], mesh: Mesh, wrapping: Wrapping, network: Network
    ) -> None:
        """Wrap what this rank has of a network."""
        self.params, self.mesh, self.wrapping, self.stamps = params, mesh, wrapping, wrapping.stamps
        # FSDP2 and stages work around blocks, which are compiled one by one then.
        cut = mesh.pp > 1 or wrapping.by == "fsdp2"
        if params["compile"] and cut:
            for number, block in enumerate(network.blocks):
                network.blocks[number] = torch.compile(block)
        if params["precision"] == "mixed_bfloat16" and wrapping.by != "fsdp2":
            autocast = torch.autocast(wrapping.device.type, torch.bfloat16)
            network.forward = autocast(network.forward)
        self.module = wrapping.wrapped(network)
        whole = params["compile"] and not cut
        self.compute: nn.Module = torch.compile(self.module) if whole else self.module

    def step(self, batch: Batch) -> torch.Tensor:
        """Add the gradients of the mean loss over all micro-steps; return that loss."""
        parts = []
        for number, (inputs, targets) in enumerate(batch, start=1):
            self.wrapping.exchange_next(self.module, number == len(batch))
            self.stamps.phase(FORWARD)
            loss = models.loss(self.compute(inputs), targets)
            if len(batch) > 1:
                loss = loss / len(batch)
            self.stamps.phase(BACKWARD)
            self.stamps.backward_from(loss)
            loss.backward()
            self.stamps.phase(REST)
            parts.append(loss.detach())
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum()

    def losses(self, losses: np.ndarray) -> np.ndarray:
        """Return the losses of steps that this rank has taken part in, known to it or not."""
        return losses

    def about(self) -> dict[str, Any]:
        """Return how many values this rank holds, and the bytes of its messages in a step."""
        values = sum(held(parameter).numel() for parameter in self.module.parameters())
        messages = {what: sum(sizes) for what, sizes in self.stamps.messages.items()}
        return {"parameters": values, "bytes": messages}
