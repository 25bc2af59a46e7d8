"""The optimisers, with the constants that cnn_training gives to those that it has too."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn


def make(params: dict[str, Any], parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimiser of all parameters.

    The weight decay of adamw is apart from the gradients, that of the others is added to them.
    """
    rate, decay = params["learning_rate"], params["weight_decay"]
    match params["optimizer"]:
        case "sgd":
            return torch.optim.SGD(parameters, rate, weight_decay=decay)
        case "momentum":
            return torch.optim.SGD(parameters, rate, momentum=0.9, weight_decay=decay)
        case "adam":
            return torch.optim.Adam(parameters, rate, weight_decay=decay)
        case _:
            return torch.optim.AdamW(parameters, rate, weight_decay=decay)
