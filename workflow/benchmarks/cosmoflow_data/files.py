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
    folder: Path | str,
    rank: int,
    epoch: int,
    seed: int = SHUFFLE_SEED,
    shuffled: Collection[str] = dataset.SPLITS,
) -> dict[str, list[str]]:
    """Return the files that `rank` reads in `epoch`, by split, in that order: one block of them.

    So rank r reads the same files whatever the number of ranks. Splits that are not `shuffled` are
    read in order.
    """
    chosen = {}
    for number, (split, count) in enumerate(files_in_data_set(params).items()):
        order = np.arange(count)
        if params.get("shard", True):
            order = np.split(order, params["ranks"])[rank]
        if params["shuffle"] == "after_shard" and split in shuffled:
            order = np.random.default_rng([seed, number, epoch, rank]).permutation(order)
        chosen[split] = [file_path(folder, split, index) for index in order]
    return chosen


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
