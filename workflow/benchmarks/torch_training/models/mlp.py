"""A network of fully connected layers, for tests and for steps that are nearly all exchange."""

import math

from torch import nn

from torch_training.models.network import Network

CLASSES = 10


def _dense(inputs: int, outputs: int) -> nn.Sequential:
    """Return a layer with ReLU; He's variance keeps signals alive over many of them."""
    linear = nn.Linear(inputs, outputs)
    linear.kernel_variance = 2 / inputs
    return nn.Sequential(linear, nn.ReLU())


def build(layers: int, width: int, shape: tuple[int, int, int]) -> Network:
    """Return the network: images to `width`, so many layers of that, and 10 classes."""
    stem = nn.Sequential(nn.Flatten(), *_dense(math.prod(shape), width))
    return Network(stem, [_dense(width, width) for _ in range(layers)], nn.Linear(width, CLASSES))
