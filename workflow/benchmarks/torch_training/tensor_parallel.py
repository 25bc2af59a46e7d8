"""Layers split over the ranks of a ``tp`` group, as DTensors by columns and rows.

In a block of the transformer query, key, value and the first wide layer are split by columns, so
that a rank has whole heads; the output of the attention and the second wide layer by rows. What
follows a split by rows is summed over the group: once a pair of layers in the forward pass, once in
the backward pass. Embeddings, normalisations and the last layer are copies, which compute the same
on every rank.
"""

from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.utils import parametrize

from torch_training.models.network import Network


def split(network: Network, mesh: DeviceMesh) -> None:
    """Split the layers of a transformer, or of a part of it, in place."""
    # Query, key and value share their input, so that its gradient is summed once.
    shared = {"input_layouts": Replicate(), "desired_input_layouts": Replicate()}
    for block in network.blocks:
        plan = {
            "attention": PrepareModuleInput(**shared),
            **{f"attention.{name}": ColwiseParallel() for name in ("query", "key", "value")},
            "attention.output": RowwiseParallel(),
            "up": ColwiseParallel(),
            "down": RowwiseParallel(),
        }
        parallelize_module(block, mesh, plan)


def held(parameter: torch.Tensor) -> torch.Tensor:
    """Return what this rank holds of a parameter."""
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def keep_local(network: nn.Module) -> None:
    """Make parameters that are DTensors plain ones of this rank's part, as DDP and optimisers want
    them; each is a DTensor where its layer computes."""
    for module in list(network.modules()):
        for name, tensor in list(module.named_parameters(recurse=False)):
            if isinstance(tensor, DTensor):
                module.register_parameter(name, nn.Parameter(held(tensor.detach())))
                parametrize.register_parametrization(module, name, _Whole(tensor), unsafe=True)


class _Whole(nn.Module):
    """A rank's part of a parameter as the DTensor that it was taken from."""

    def __init__(self, tensor: DTensor) -> None:
        super().__init__()
        self.mesh, self.places = tensor.device_mesh, tensor.placements

    def forward(self, local: torch.Tensor) -> Any:
        return DTensor.from_local(local, self.mesh, self.places, run_check=False)
