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


class Order:
    """The numbers of a rank's batches, without end: every epoch in an order of its own.

    A step takes the next samples of all ranks; share `index` of `count` takes its micro-batches in
    a row, so that the samples of a step are the same however it is shared.
    """

    def __init__(self, params: dict[str, Any], index: int, count: int) -> None:
        """Keep the sizes."""
        self.samples, self.seed = params["data_samples"], params["seed"]
        self.batch, self.accumulation = params["batch_size"], params["accumulation"]
        self.index, self.count = index, count

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the samples of one micro-batch after the other."""
        own = self.accumulation * self.batch
        epoch = lru_cache(maxsize=2)(self._epoch)
        for step in itertools.count():
            first = (step * self.count + self.index) * own
            for begin in range(first, first + own, self.batch):
                places = [divmod(n, self.samples) for n in range(begin, begin + self.batch)]
                yield [int(epoch(number)[place]) for number, place in places]

    def _epoch(self, number: int) -> np.ndarray:
        return np.random.default_rng([ORDER, self.seed, number]).permutation(self.samples)


def as_it_is(batch: Batch) -> Batch:
    """Return what `Samples` gives: batches already."""
    return batch


def make(folder: Path, params: dict[str, Any], index: int, count: int) -> Iterator[Batch]:
    """Return an endless iterator of a share's batches, which begins to read at once."""
    workers = params["loader_workers"]
    loader: DataLoader[Batch] = DataLoader(
        Samples(folder, params),
        batch_sampler=Order(params, index, count),
        collate_fn=as_it_is,
        num_workers=workers,
        prefetch_factor=params["prefetch"] if workers else None,
        pin_memory=params["pin_memory"],
    )
    return iter(loader)
