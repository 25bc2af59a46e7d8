"""Samples of the stand-in, read by PyTorch's DataLoader: in the rank or in its processes."""

import itertools
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from torch_training import dataset

ORDER = 0x6F726472  # keeps these random numbers apart from those of weights and samples
OPEN_FILES = 256  # of a process
Batch = tuple[torch.Tensor, torch.Tensor]


class Samples(Dataset):
    """The samples of the files, by number."""

    def __init__(self, folder: Path, params: dict[str, Any]) -> None:
        """Open no file yet: each process opens its own."""
        self.folder, self.params = folder, params
        self.stand_in = dataset.StandIn.from_params(params)

    def __len__(self) -> int:
        """Return the number of samples."""
        return int(self.params["data_samples"])

    def __getitems__(self, numbers: list[int]) -> Batch:
        """Return inputs and targets of a batch, on the host."""
        each = self.stand_in.samples_per_file
        rows = np.stack([self._rows(number // each)[number % each] for number in numbers])
        if self.params["model"] == "transformer":
            return of_tokens(torch.from_numpy(rows.astype(np.int64)))
        labels = rows[:, : dataset.LABEL_BYTES].copy().view("<u2").astype(np.int64)
        shape = dataset.IMAGE_SHAPES[self.params["model"]]
        pixels = torch.from_numpy(rows[:, dataset.LABEL_BYTES :].reshape(-1, *shape))
        nhwc = self.params["data_format"] == "NHWC"
        layout = torch.channels_last if nhwc else torch.contiguous_format
        images = pixels.permute(0, 3, 1, 2).to(torch.float32, memory_format=layout)
        return images.mul_(1 / 127.5).sub_(1.0), torch.from_numpy(labels[:, 0])

    def _rows(self, number: int) -> np.ndarray:
        return _opened(self.stand_in, self.stand_in.path(self.folder, "train", number))


def of_tokens(rows: torch.Tensor) -> Batch:
    """Return inputs and targets of sequences: each token is to tell the one after it."""
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


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


def as_it_is(batch: Batch) -> Batch:
    """Return what `Samples` gives: batches already."""
    return batch


def make(folder: Path, params: dict[str, Any], index: int, count: int) -> Iterator[Batch]:
    """Return an endless iterator of a share's batches, which begins to read at once."""
    workers = params["loader_workers"]
    loader: DataLoader[Batch] = DataLoader(
        Samples(folder, params),
        batch_sampler=order(params, index, count),
        collate_fn=as_it_is,
        num_workers=workers,
        prefetch_factor=params["prefetch"] if workers else None,
        pin_memory=params["pin_memory"],
    )
    return iter(loader)
