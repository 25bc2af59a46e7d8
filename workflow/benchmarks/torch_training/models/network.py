"""What all networks have: a stem, blocks in a row, a head; and their first weights."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from harness import seeded

Value = np.ndarray | float


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
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)


def initial_values(network: nn.Module, seed: int) -> Iterator[tuple[torch.Tensor, Value]]:
    """Yield each weight of a network and its first values.

    Kernels are normal with a variance of one over the number of inputs, or as the module says
    (`kernel_variance`); scales and moving variances are one, the rest zero. Each kernel depends on
    `seed` and its number in the network alone. Numbers are Keras's: in the order of modules, their
    trained weights and then their statistics. Weights that are used twice come once.
    """
    number, seen = 0, set()
    for module in network.modules():
        trained, statistics = list(module.named_parameters(recurse=False)), _statistics(module)
        for name, tensor in [*trained, *statistics]:
            if id(tensor) not in seen and name == "weight" and tensor.dim() > 1:
                yield tensor, _kernel(module, tensor, seed, number)
            elif id(tensor) not in seen:
                yield tensor, 1.0 if name in ("weight", "running_var") else 0.0
            seen.add(id(tensor))
            number += 1


def _statistics(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Return the moving statistics of a module: no counters."""
    return [
        (name, buffer)
        for name, buffer in module.named_buffers(recurse=False)
        if buffer.is_floating_point()
    ]


def _kernel(module: nn.Module, tensor: torch.Tensor, seed: int, number: int) -> np.ndarray:
    """Return values for a kernel, drawn in Keras's order: outputs last (embeddings as they are)."""
    if isinstance(module, nn.Embedding):
        return seeded.kernel(tensor.shape, seed, number, module.kernel_variance)
    outputs, inputs, *size = tensor.shape
    fan_in = inputs * int(np.prod(size, dtype=int))
    variance = getattr(module, "kernel_variance", 1 / fan_in)
    drawn = seeded.kernel((*size, inputs, outputs), seed, number, variance)
    places = [drawn.ndim - 1, drawn.ndim - 2, *range(len(size))]
    return np.ascontiguousarray(drawn.transpose(places))
