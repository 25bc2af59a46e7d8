"""A step in which a rank computes the whole network, or its part of each layer."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributed.tensor import DTensor

from torch_training import models
from torch_training.data_parallel import Wrapping
from torch_training.mesh import Position, Shape
from torch_training.models.network import Network
from torch_training.stamps import FORWARD
from torch_training.tensor_parallel import REDUCED

Batch = Sequence[tuple[torch.Tensor, torch.Tensor]]  # inputs and targets of each micro-step


class Sharing:
    """What computes the gradients of a step on this rank.

    `modules` compute, `parameters()` are what the optimiser updates, `position` is where the rank
    lies on the mesh of all.
    """

    def __init__(
        self,
        params: dict[str, Any],
        shape: Shape,
        position: Position,
        wrapping: Wrapping,
        networks: Sequence[Network],
        values: int,
    ) -> None:
        """Wrap what this rank has of a network with so many trained values: a stage, or several."""
        self.values = values
        self.params, self.shape, self.position = params, shape, position
        self.wrapping, self.stamps = wrapping, wrapping.stamps
        cut = shape.pp * shape.tp > 1 or wrapping.by == "fsdp2"
        self.modules = [self._wrapped(network, params["compile"] and cut) for network in networks]
        whole = params["compile"] and not cut
        self.computes = [torch.compile(m) if whole else m for m in self.modules]

    def _wrapped(self, network: Network, compiled: bool) -> nn.Module:
        """Return a network in the precision that is asked for, and in its wrapper.

        Where compiled, it is so by blocks: FSDP2, stages and sums over a group work around them.
        """
        if compiled:
            for number, block in enumerate(network.blocks):
                network.blocks[number] = torch.compile(block)
        if self.params["precision"] == "mixed_bfloat16" and self.wrapping.by != "fsdp2":
            autocast = torch.autocast(self.wrapping.device.type, torch.bfloat16)
            network.forward = autocast(network.forward)
        return self.wrapping.wrapped(network)

    @property
    def by(self) -> str:
        """The dimensions of the mesh with more than one rank, and how data-parallel ranks share."""
        cut = [name for name in ("pp", "tp") if getattr(self.shape, name) > 1]
        shared = [] if cut and self.wrapping.by == "none" else [self.wrapping.by]
        return " x ".join([*cut, *shared])

    def parameters(self) -> list[nn.Parameter]:
        """Return what the optimiser updates."""
        return [parameter for module in self.modules for parameter in module.parameters()]

    def local_parameters(self) -> list[torch.Tensor]:
        """Return the parts of it that this rank holds."""
        return [p.to_local() if isinstance(p, DTensor) else p for p in self.parameters()]

    def step(self, batch: Batch) -> torch.Tensor:
        """Add the gradients of the mean loss over all micro-steps; return that loss."""
        (module,), (compute,) = self.modules, self.computes
        parts = []
        for number, (inputs, targets) in enumerate(batch, start=1):
            with self.wrapping.exchanging(module, number == len(batch)):
                with self.stamps.doing(FORWARD):
                    loss = models.loss(compute(inputs), targets)
                    if len(batch) > 1:
                        loss = loss / len(batch)
                loss.backward()
            parts.append(loss.detach())
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum()

    def losses(self, losses: np.ndarray) -> np.ndarray:
        """Return the losses of steps that this rank has taken part in, known to it or not."""
        return losses

    def sent(self) -> dict[str, list[int]]:
        """Return the bytes of each message of the newest step, besides those of data-parallel
        ranks, by the dimension of the mesh."""
        return {"tp": self.stamps.messages.get(REDUCED, [])}

    def exchange(self) -> dict[str, Any] | None:
        """Return what this rank exchanges in a step, for the record; None where it does not.

        Gradients and messages are those of data-parallel ranks (None without such ranks). `other`
        are the messages of other dimensions of the mesh: pairs of bytes and how often.
        """
        other = {name: sorted(Counter(sizes).items()) for name, sizes in self.sent().items()}
        other = {name: pairs for name, pairs in other.items() if pairs}
        noted = self.wrapping.exchange(self.modules)
        if not other:
            return noted
        names = ("tensor_bytes", "bucket_bytes", "cycle_s", "messages")
        nothing = {"by": " x ".join(other), **dict.fromkeys(names), "from": {}}
        return (noted or nothing) | {"other": other}

    def about(self) -> dict[str, Any]:
        """Return how many values this rank holds, and the bytes of its messages in a step."""
        messages = {what: sum(sizes) for what, sizes in self.stamps.messages.items()}
        return {"parameters": sum(p.numel() for p in self.local_parameters()), "bytes": messages}

    def layout(self, about_ranks: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the mesh, on which ranks are numbered with the last dimension fastest, and what
        each rank holds and exchanges in a step, from `about` of each: a list by rank."""
        kinds = sorted({what for about in about_ranks for what in about["bytes"]})
        return {
            "mesh": self.shape._asdict(),
            "parameters": [about["parameters"] for about in about_ranks],
            "bytes": {w: [about["bytes"].get(w, 0) for about in about_ranks] for w in kinds},
        }
