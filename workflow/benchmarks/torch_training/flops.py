"""Floating-point operations of a step, by PyTorch's own counter.

``torch.utils.flop_counter`` counts two for each multiplication and addition of a matrix product or
convolution, of the forward pass and of the backward pass as autograd runs it (no gradient of the
first layer's input, for example); attention counts in full, although half of it is masked.
Normalisation, activations, loss, embeddings and the optimiser count for nothing, and so does what
`checkpointing` computes again.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from torch_training import models
from torch_training.mesh import Shape, position_of
from torch_training.models.network import Network


def per_sample(params: dict[str, Any]) -> int:
    """Return the operations of forward and backward pass for a sample, computed without values."""
    with torch.device("meta"):
        return _counted(_network(params), models.example(params)[0])[0]


def of_ranks(params: dict[str, Any], shape: Shape) -> list[int]:
    """Return the operations of each rank for a sample of its data-parallel rank.

    The first stage of a pipeline has the stem, the last one the head, and each as many blocks; the
    ranks of a tp group share the blocks, and each computes stem and head.
    """
    if shape.pp * shape.tp == 1:
        return [per_sample(params)] * shape.ranks
    with torch.device("meta"):
        network = _network(params)
        stem, between = _counted(network.stem, models.example(params)[0])
        block, _ = _counted(network.blocks[0], between)
        head, _ = _counted(network.head, between)
    blocks = block * len(network.blocks) // (shape.pp * shape.tp)
    stages = [position_of(shape, rank).pp for rank in range(shape.ranks)]
    last = shape.pp - 1
    return [blocks + stem * (stage == 0) + head * (stage == last) for stage in stages]


def recomputed(params: dict[str, Any], shape: Shape) -> list[int]:
    """Return the operations that each rank computes again for a sample, in its backward pass: with
    `checkpointing` full the forward pass of its blocks; stem and head are computed once."""
    if params["checkpointing"] == "none":
        return [0] * shape.ranks
    with torch.device("meta"):
        network = _network(params)
        between = network.stem(models.example(params)[0])
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            for block in network.blocks:
                between = block(between)
    return [int(counter.get_total_flops()) // (shape.pp * shape.tp)] * shape.ranks


def _network(params: dict[str, Any]) -> Network:
    return models.build({**params, "checkpointing": "none"})


def _counted(module: nn.Module, inputs: torch.Tensor) -> tuple[int, torch.Tensor]:
    """Return the operations of both passes through a module, and outputs that want gradients."""
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        outputs = module(inputs)
        outputs.sum().backward()
    return int(counter.get_total_flops()), outputs.detach().requires_grad_()
