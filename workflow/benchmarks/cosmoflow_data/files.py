"""Which files a rank reads in an epoch, and whether they are there. Starts no TensorFlow."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from cosmoflow_data import dataset
from harness import ranks
from harness.program import Run
from harness.staging import file_path

SHUFFLE_SEED = 7


def files_in_data_set(params: dict[str, Any]) -> dict[str, int]:
    """Return how many files of each split all ranks read together; without `shard`: sharded."""
    copies = params["ranks"] if params.get("shard", True) else 1
    return {
        "train": params["samples_per_rank"] // params["samples_per_file"] * copies,
        "valid": params["validation_samples_per_rank"] // params["samples_per_file"] * copies,
    }


def files_of_rank(
    params: dict[str, Any],
    rank: int,
    epoch: int,
    seed: int = SHUFFLE_SEED,
    shuffled: Collection[str] = dataset.SPLITS,
) -> dict[str, np.ndarray]:
    """Return the indices of the files that `rank` reads in `epoch`, by split, in that order.

    A rank's share is one block of the files (of their common permutation with before_shard), so
    without it rank r reads the same files whatever the number of ranks. Splits that are not
    `shuffled` are read in order.
    """
    chosen = {}
    for number, (split, count) in enumerate(files_in_data_set(params).items()):
        shuffle = params["shuffle"] if split in shuffled else "off"
        order = np.arange(count)
        if shuffle == "before_shard":
            order = np.random.default_rng([seed, number, epoch]).permutation(order)
        if params.get("shard", True):
            order = np.split(order, params["ranks"])[rank]
        if shuffle == "after_shard":
            order = np.random.default_rng([seed, number, epoch, rank]).permutation(order)
        chosen[split] = order
    return chosen


def paths(folder: Path, chosen: dict[str, np.ndarray]) -> dict[str, list[str]]:
    """Turn indices of files into paths below `folder`."""
    return {
        split: [file_path(folder, split, index) for index in indices]
        for split, indices in chosen.items()
    }


def require(run: Run, **changes: int) -> None:
    """End all ranks with code 66 unless the data set is there, of parameters with `changes`."""
    params = run.params | changes
    data, files = dataset.Format.from_params(params), files_in_data_set(params)
    ranks.raise_together(data.missing(run.data, files) if ranks.rank() == 0 else None)


def bytes_of(names: list[str]) -> int:
    """Return the bytes of files.

    To be called after what is timed: before, it would warm a parallel file system's caches.
    """
    return sum(Path(name).stat().st_size for name in names)
