"""The batches of a rank: on the device, a micro-batch for each step of accumulation.

A sample of input synthetic depends on its number in the step alone: two ranks with batches of 16
train on what one with a batch of 32, or with two micro-batches of 16, does. Those of the stand-in
are read by PyTorch's DataLoader, in the rank or in its processes.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from harness import seeded
from torch_training import dataset, models

ORDER = 0x6F726472  # keeps these random numbers apart from those of weights and samples
OPEN_FILES = 256  # of a process
Batch = tuple[torch.Tensor, torch.Tensor]  # inputs and targets
Read = Callable[[], list[Batch]]


def make(
    params: dict[str, Any], data: Path | None, share: tuple[int, int], device: torch.device
) -> Read:
    """Return the function that gives a rank's next batches, on the device.

    The rank takes share ``(i, n)`` of a step's samples: i of n. Of input synthetic batches stay
    there and are the same in every step; staged ones are read from `data`, at once and ahead.
    """
    batch, steps = params["batch_size"], params["accumulation"]
    if params["input"] == "synthetic":
        firsts = [(share[0] * steps + step) * batch for step in range(steps)]
        resident = [to_device(synthetic(params, f, batch), params, device) for f in firsts]
        return lambda: resident
    batches = iter(
        DataLoader(
            Samples(Path(data or ""), params),
            batch_size=None,  # `Samples` gives batches already
            sampler=order(params, *share),
            num_workers=params["loader_workers"],
            prefetch_factor=params["prefetch"] if params["loader_workers"] else None,
            pin_memory=params["pin_memory"],
        )
    )
    return lambda: [to_device(next(batches), params, device) for _ in range(steps)]


def synthetic(params: dict[str, Any], first: int, count: int) -> Batch:
    """Return samples `first` to ``first + count`` of a step: those of cnn_training, or tokens."""
    if params["model"] == "transformer":
        length = params["sequence"] + 1
        tokens = seeded.fixed_tokens(length, params["vocabulary"], params["seed"], first, count)
        rows = torch.from_numpy(tokens)  # each token is to tell the next
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    shape, classes = models.IMAGE_SHAPES[params["model"]], models.CLASSES[params["model"]]
    images, labels = seeded.fixed_batch(shape, classes, params["seed"], first, count)
    return torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels).long()


def layout(params: dict[str, Any]) -> torch.memory_format:
    """Return how images lie in memory."""
    return torch.channels_last if params["data_format"] == "NHWC" else torch.contiguous_format


def to_device(batch: Batch, params: dict[str, Any], device: torch.device) -> Batch:
    """Return inputs and targets on the device, images in the layout that is asked for."""
    inputs, targets = (tensor.to(device, non_blocking=True) for tensor in batch)
    if inputs.dim() == 4:
        inputs = inputs.contiguous(memory_format=layout(params))
    return inputs, targets


class Samples(Dataset):
    """Batches of samples of the stand-in, by their numbers."""

    def __init__(self, folder: Path, params: dict[str, Any]) -> None:
        """Open no file yet: each process opens its own."""
        self.folder, self.params = folder, params
        self.stand_in = dataset.StandIn.from_params(params)

    def __getitem__(self, numbers: list[int]) -> Batch:
        """Return inputs and targets of a batch, on the host."""
        each = self.stand_in.samples_per_file
        rows = np.stack([self._rows(number // each)[number % each] for number in numbers])
        labels = rows[:, : dataset.LABEL_BYTES].copy().view("<u2").astype(np.int64)
        shape = dataset.IMAGE_SHAPES[self.params["model"]]
        pixels = torch.from_numpy(rows[:, dataset.LABEL_BYTES :].reshape(-1, *shape))
        images = pixels.permute(0, 3, 1, 2).to(torch.float32, memory_format=layout(self.params))
        return images.mul_(1 / 127.5).sub_(1.0), torch.from_numpy(labels[:, 0])

    def _rows(self, number: int) -> np.ndarray:
        return _opened(self.stand_in, self.stand_in.path(self.folder, "train", number))


@lru_cache(maxsize=OPEN_FILES)
def _opened(stand_in: dataset.StandIn, path: str) -> np.ndarray:
    return stand_in.open(path)


def order(params: dict[str, Any], index: int, count: int) -> Iterator[list[int]]:
    """Yield the samples of one micro-batch after the other, without end: every epoch in an order of
    its own.

    A step takes the next samples of all ranks; share `index` of `count` takes its micro-batches in
    a row, so that the samples of a step are the same however it is shared.
    """
    samples, batch = params["data_samples"], params["batch_size"]
    own = params["accumulation"] * batch

    @lru_cache(maxsize=2)
    def epoch(number: int) -> np.ndarray:
        return np.random.default_rng([ORDER, params["seed"], number]).permutation(samples)

    for first in itertools.count(index * own, count * own):
        for begin in range(first, first + own, batch):
            places = [divmod(number, samples) for number in range(begin, begin + batch)]
            yield [int(epoch(number)[place]) for number, place in places]
