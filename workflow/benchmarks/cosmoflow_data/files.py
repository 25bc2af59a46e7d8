"""Which files a rank reads in an epoch, and whether they are there and of the right size.

For all benchmarks that read this data set. Starts no TensorFlow.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from cosmoflow_data import dataset
from harness import ranks
from harness.program import EXIT_BAD_DATA, Run
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


def find_missing(run: Run) -> tuple[int, str] | None:
    """Return exit code and message when the data set is not there as a whole, else None."""
    return dataset.Format.from_params(run.params).missing(run.data, files_in_data_set(run.params))


def bytes_of(params: dict[str, Any], names: list[str]) -> int:
    """Return the bytes of files; ProgramError on all ranks if those of one hold not just samples.

    Samples too many in a file would otherwise go unseen: they fall into a last, incomplete batch.
    To be called after what is timed: before, it would warm a parallel file system's caches.
    """
    size = sum(Path(name).stat().st_size for name in names)
    expected = len(names) * dataset.Format.from_params(params).file_bytes
    wrong = params["compression"] == "none" and size != expected
    said = f"the files read have {size} bytes, not {expected}"
    ranks.raise_together((EXIT_BAD_DATA, said) if wrong else None)
    return size
