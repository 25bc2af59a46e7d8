"""What all networks have: a stem, blocks in a row, a head; and their first weights."""

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from harness import seeded


class Network(nn.Module):
    """A network that can be cut between its blocks; a part of it lacks stem or head (None).

    With `checkpointing` the activations inside blocks are not kept: the backward pass computes each
    block again.
    """

    def __init__(
        self, stem: nn.Module | None, blocks: Sequence[nn.Module], head: nn.Module | None
    ) -> None:
        """Put the parts together."""
        super().__init__()
        self.stem, self.blocks, self.head = stem, nn.ModuleList(blocks), head
        self.checkpointing = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits, or what the next part takes."""
        if self.stem is not None:
            x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return x if self.head is None else self.head(x)


class SamePadded(nn.Conv2d):
    """A convolution of 3x3 with stride 2 as TensorFlow pads it: a row below, a column at the right.

    PyTorch's own padding would be on all sides, and the convolution see other pixels.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve images of even height and width."""
        return super().forward(nn.functional.pad(x, (0, 1, 0, 1)))


def conv(inputs: int, outputs: int, size: int, stride: int = 1, bias: bool = False) -> nn.Conv2d:
    """Return a convolution of 1x1 or 3x3 that divides height and width by `stride`."""
    if size == 3 and stride == 2:
        return SamePadded(inputs, outputs, size, stride, bias=bias)
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=bias)


def count(network: nn.Module) -> int:
    """Return the number of trained values; weights that are used twice count once."""
    return sum(parameter.numel() for parameter in network.parameters())


@torch.no_grad()
def initialise(network: nn.Module, seed: int) -> None:
    """Give a whole network the weights to begin with, which depend on `seed` alone: not on device,
    ranks or layout. The residual networks get those of cnn_training.

    Kernels are normal with a variance of one over the number of inputs, or as the module says
    (`kernel_variance`); scales and moving variances are one, the rest zero. Each kernel depends on
    `seed` and its number in the network alone. Numbers are Keras's: in the order of modules, their
    trained weights and then their statistics. Weights that are used twice are drawn once.
    """
    number, seen = 0, set()
    for module in network.modules():
        buffers = module.named_buffers(recurse=False)
        statistics = [named for named in buffers if named[1].is_floating_point()]  # no counters
        for name, tensor in [*module.named_parameters(recurse=False), *statistics]:
            if tensor not in seen and name == "weight" and tensor.dim() > 1:
                tensor.copy_(_kernel(module, tensor, seed, number))
            elif tensor not in seen:
                tensor.fill_(float(name in ("weight", "running_var")))
            seen.add(tensor)
            number += 1


def _kernel(module: nn.Module, tensor: torch.Tensor, seed: int, number: int) -> torch.Tensor:
    """Return values for a kernel, drawn in Keras's order: outputs last (embeddings as they are)."""
    if isinstance(module, nn.Embedding):
        return torch.from_numpy(seeded.kernel(tensor.shape, seed, number, module.kernel_variance))
    outputs, inputs, *size = tensor.shape
    variance = getattr(module, "kernel_variance", 1 / (inputs * math.prod(size)))
    drawn = seeded.kernel((*size, inputs, outputs), seed, number, variance)
    return torch.from_numpy(drawn).movedim((-1, -2), (0, 1))
