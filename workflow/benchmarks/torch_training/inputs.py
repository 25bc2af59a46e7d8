"""The batches of a rank: on the device, a micro-batch for each step of accumulation."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness import seeded
from torch_training import models

Batch = list[tuple[torch.Tensor, torch.Tensor]]
Read = Callable[[], Batch]


@dataclass(frozen=True)
class Place:
    """Which share of a step's samples a rank takes: `index` of `count`."""

    index: int
    count: int


def make(params: dict[str, Any], data: Path | None, place: Place, device: torch.device) -> Read:
    """Return the function that gives a rank's next batches.

    Of input synthetic they stay on the device and are the same in every step. A sample depends on
    its number in the step alone: two ranks with batches of 16 train on what one with a batch of 32,
    or with two micro-batches of 16, does.
    """
    batch, steps = params["batch_size"], params["accumulation"]
    resident = []
    for step in range(steps):
        first = (place.index * steps + step) * batch
        inputs, targets = synthetic(params, first, batch)
        resident.append((to_device(inputs, params, device), targets.to(device)))
    return lambda: resident


def synthetic(params: dict[str, Any], first: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return samples `first` to ``first + count`` of a step: those of cnn_training, or tokens."""
    if params["model"] == "transformer":
        length = params["sequence"] + 1
        tokens = seeded.fixed_tokens(length, params["vocabulary"], params["seed"], first, count)
        return of_tokens(torch.from_numpy(tokens))
    shape, classes = models.IMAGE_SHAPES[params["model"]], models.CLASSES[params["model"]]
    images, labels = seeded.fixed_batch(shape, classes, params["seed"], first, count)
    return torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels).long()


def of_tokens(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and targets of sequences: each token is to tell the one after it."""
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def to_device(inputs: torch.Tensor, params: dict[str, Any], device: torch.device) -> torch.Tensor:
    """Return inputs on the device, images in the layout that is asked for."""
    if inputs.dim() != 4:
        return inputs.to(device, non_blocking=True)
    layout = torch.channels_last if params["data_format"] == "NHWC" else torch.contiguous_format
    return inputs.to(device, non_blocking=True).contiguous(memory_format=layout)
