"""The networks: `build` makes one of the parameters, `initialise` gives it its first weights."""

import math
from typing import Any

import torch
from torch import nn

from torch_training.dataset import CLASSES, IMAGE_SHAPES
from torch_training.models import resnet, transformer
from torch_training.models.network import Network, count, initialise

__all__ = ["CLASSES", "IMAGE_SHAPES", "build", "count", "initialise", "loss"]


def build(params: dict[str, Any]) -> Network:
    """Return the network on the current device, with weights of PyTorch's that are not seeded."""
    match params["model"]:
        case "mlp":
            network = fully_connected(params["layers"], params["width"])
        case "resnet20":
            network = resnet.resnet20()
        case "resnet50":
            network = resnet.resnet50()
        case _:
            names = ("layers", "width", "heads", "sequence", "vocabulary", "tied_weights")
            network = transformer.build(*(params[name] for name in names))
    network.checkpointing = params["checkpointing"] == "full"
    return network


def fully_connected(layers: int, width: int) -> Network:
    """Return the network: images to `width`, so many layers of that, and 10 classes."""
    stem = nn.Sequential(nn.Flatten(), *_dense(math.prod(IMAGE_SHAPES["mlp"]), width))
    blocks = [_dense(width, width) for _ in range(layers)]
    return Network(stem, blocks, nn.Linear(width, CLASSES["mlp"]))


def _dense(inputs: int, outputs: int) -> nn.Sequential:
    """Return a layer with ReLU; He's variance keeps signals alive over many of them."""
    linear = nn.Linear(inputs, outputs)
    linear.kernel_variance = 2 / inputs
    return nn.Sequential(linear, nn.ReLU())


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy, in float32, of logits ``[..., classes]`` and targets."""
    return nn.functional.cross_entropy(outputs.flatten(0, -2).float(), targets.flatten())
