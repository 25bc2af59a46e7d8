"""Layers split over the ranks of a ``tp`` group, as DTensors by columns and rows.

In a block of the transformer query, key, value and the first wide layer are split by columns, so
that a rank has whole heads; the output of the attention and the second wide layer by rows. The
network of fully connected layers has its layers split in turns. What follows a split by rows is
summed over the group: once a pair of layers in the forward pass, once in the backward pass.
Embeddings, normalisations and the last layer are copies, which compute the same on every rank.

Layers get styles of PyTorch (torch.distributed.tensor.parallel). Only where these would
reduce, `_Enter` and `_Leave` do, so that each reduction can be timed and counted.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from torch_training.models.network import Network
from torch_training.stamps import TENSOR_PARALLEL, Stamps

REDUCED = "activations_reduced_bytes"  # and their gradients, over the tp group


class _Enter(torch.autograd.Function):
    """A tensor that all ranks hold as a DTensor; its gradient is summed over them."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, mesh: DeviceMesh, stamps: Stamps) -> DTensor:
        ctx.stamps = stamps
        return DTensor.from_local(x, mesh, [Replicate()], run_check=False)

    @staticmethod
    def backward(ctx: Any, gradient: DTensor) -> tuple[torch.Tensor, None, None]:
        return _summed(gradient, ctx.stamps), None, None


class _Leave(torch.autograd.Function):
    """The sum over the ranks of what each has computed, as a tensor that all hold."""

    @staticmethod
    def forward(ctx: Any, output: DTensor, stamps: Stamps) -> torch.Tensor:
        ctx.mesh = output.device_mesh
        return _summed(output, stamps)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[DTensor, None]:
        return DTensor.from_local(gradient, ctx.mesh, [Replicate()], run_check=False), None


def _summed(value: DTensor, stamps: Stamps) -> torch.Tensor:
    with stamps.waiting(TENSOR_PARALLEL):
        local = value.redistribute(placements=[Replicate()]).to_local()
        wait = getattr(local, "wait", None)  # where the collective is still under way
        local = local if wait is None else wait()
    stamps.count(REDUCED, local)
    return local


def split(network: Network, mesh: DeviceMesh, stamps: Stamps) -> None:
    """Split the layers of a network, or of a part of it, in place."""
    stamps.of_tensor_parallel()

    # Outside of compiled graphs, in which nobody would see how long a rank waits.
    @torch.compiler.disable
    def enter(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        return _Enter.apply(inputs[0], mesh, stamps), *inputs[1:]

    @torch.compiler.disable
    def leave(_: nn.Module, __: Any, output: DTensor) -> torch.Tensor:
        return _Leave.apply(output, stamps)

    by_rows = RowwiseParallel(output_layouts=Partial(), use_local_output=False)
    for part, entered, columns, rows in _plans(network):
        plan = {name: ColwiseParallel() for name in columns} | dict.fromkeys(rows, by_rows)
        parallelize_module(part, mesh, plan)
        for name in entered:
            part.get_submodule(name).register_forward_pre_hook(enter, prepend=True)
        for name in rows:
            part.get_submodule(name).register_forward_hook(leave)


def _plans(network: Network) -> Iterator[tuple[nn.Module, list[str], list[str], list[str]]]:
    """Yield parts with the names of what takes whole tensors, of layers by columns, by rows."""
    blocks = network.blocks
    if not hasattr(blocks[0], "attention"):
        for first in range(0, len(blocks), 2):
            yield blocks, [f"{first}.0"], [f"{first}.0"], [f"{first + 1}.0"]
        return
    heads = [f"attention.{name}" for name in ("query", "key", "value")]
    for block in blocks:
        yield block, ["attention", "up"], [*heads, "up"], ["attention.output", "down"]


def keep_local(network: nn.Module) -> None:
    """Make parameters that are DTensors plain ones of this rank's part, as DDP and optimisers want
    them; each is a DTensor again while its layer computes."""
    for module in network.modules():
        spread = {
            name: parameter
            for name, parameter in module.named_parameters(recurse=False)
            if isinstance(parameter, DTensor)
        }
        if spread:
            _keep_local(module, spread)


def _keep_local(module: nn.Module, spread: dict[str, DTensor]) -> None:
    for name, tensor in spread.items():
        module.register_parameter(name, nn.Parameter(tensor.detach().to_local()))

    def assemble(*_: Any) -> None:
        for name, tensor in spread.items():
            local, mesh, places = getattr(module, name), tensor.device_mesh, tensor.placements
            # An attribute of the instance hides the parameter of that name.
            module.__dict__[name] = DTensor.from_local(local, mesh, places, run_check=False)

    def release(*_: Any) -> None:
        for name in spread:
            module.__dict__.pop(name, None)

    module.register_forward_pre_hook(assemble, prepend=True)
    module.register_forward_hook(release, always_call=True)
