"""The batches of a rank: on the device, a micro-batch for each step of accumulation."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness import seeded
from harness.program import EXIT_UNSUPPORTED
from torch_training import dataset, loader, models

Batch = list[tuple[torch.Tensor, torch.Tensor]]
Read = Callable[[], Batch]


@dataclass(frozen=True)
class Place:
    """Which share of a step's samples a rank takes: `index` of `count`."""

    index: int
    count: int


def make(params: dict[str, Any], data: Path | None, place: Place, device: torch.device) -> Read:
    """Return the function that gives a rank's next batches, on the device.

    Of input synthetic they stay there and are the same in every step. A sample depends on its
    number in the step alone: two ranks with batches of 16 train on what one with a batch of 32, or
    with two micro-batches of 16, does. Call `check` before.
    """
    batch, steps = params["batch_size"], params["accumulation"]
    if params["input"] == "staged" and data is not None:
        batches = loader.make(data, params, place.index, place.count)
        return lambda: [to_device(*next(batches), params, device) for _ in range(steps)]
    resident = []
    for step in range(steps):
        first = (place.index * steps + step) * batch
        resident.append(to_device(*synthetic(params, first, batch), params, device))
    return lambda: resident


def check(
    params: dict[str, Any], data: Path | None, place: Place, device: torch.device
) -> tuple[int, str] | None:
    """Return exit code and message if this rank cannot read what it is to."""
    if params["input"] == "synthetic":
        return None
    if params["pin_memory"] and device.type == "cpu":
        return EXIT_UNSUPPORTED, "pin_memory true: there is no GPU here"
    return dataset.damage(data, params, place.index, place.count)


def synthetic(params: dict[str, Any], first: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return samples `first` to ``first + count`` of a step: those of cnn_training, or tokens."""
    if params["model"] == "transformer":
        length = params["sequence"] + 1
        tokens = seeded.fixed_tokens(length, params["vocabulary"], params["seed"], first, count)
        return loader.of_tokens(torch.from_numpy(tokens))
    shape, classes = models.IMAGE_SHAPES[params["model"]], models.CLASSES[params["model"]]
    images, labels = seeded.fixed_batch(shape, classes, params["seed"], first, count)
    return torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels).long()


def to_device(
    inputs: torch.Tensor, targets: torch.Tensor, params: dict[str, Any], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and targets on the device, images in the layout that is asked for."""
    inputs = inputs.to(device, non_blocking=True)
    if inputs.dim() == 4:
        nhwc = params["data_format"] == "NHWC"
        layout = torch.channels_last if nhwc else torch.contiguous_format
        inputs = inputs.contiguous(memory_format=layout)
    return inputs, targets.to(device, non_blocking=True)
