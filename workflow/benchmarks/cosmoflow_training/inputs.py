"""The batches of an epoch: read from TFRecord files, or one that stays in memory."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from cosmoflow_data import dataset, files, pipeline
from harness import input_errors
from harness.program import EXIT_BAD_DATA, ProgramError
from harness.tf_training import Batches

Batch = tuple[tf.Tensor, tf.Tensor]
Epochs = Callable[[str, int], Batches]
SHUFFLED = ("train",)


def make(params: dict[str, Any], folder: Path | None, rank: int, seed: int) -> Epochs:
    """Return a function from split (``train``, ``valid``) and epoch to that epoch's batches.

    A batch is x float32 ``[batch_size, *sample_shape]`` and y float32 ``[batch_size, 4]``. What has
    to be traced is traced here; no file is opened before the batches are iterated over.
    """
    if params["input"] == "dummy":
        batch = dummy_batch(params, rank, seed)
        return lambda split, epoch: itertools.repeat(batch)

    traced = opener(params)
    cached: dict[str, tf.data.Dataset] = {}

    def epochs(split: str, epoch: int) -> Batches:
        chosen = names_of_rank(params, folder, rank, epoch, seed)[split]

        def make_data() -> tf.data.Dataset:
            if params["cache"] == "none":
                return traced(tf.constant(chosen, tf.string))
            if split not in cached:  # the cache lives as long as the data set it belongs to
                cached[split] = pipeline.batches(tf.constant(chosen, tf.string), params)
            return cached[split]

        count = len(chosen) * params["samples_per_file"] // params["batch_size"]
        return read(make_data, count, f"rank {rank}, {split}", chosen, params["compression"])

    return epochs


def names_of_rank(
    params: dict[str, Any], folder: Path, rank: int, epoch: int, seed: int
) -> dict[str, list[str]]:
    """Return the files that `rank` reads in `epoch`, by split: training in an order by `seed`."""
    return files.paths(folder, files.files_of_rank(params, rank, epoch, seed, SHUFFLED))


def opener(params: dict[str, Any]) -> Callable[[tf.Tensor], tf.data.Dataset]:
    """Return a function from file names to their pipeline, which takes 1 ms, untraced 20 ms."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def open_files(names: tf.Tensor) -> tf.data.Dataset:
        return pipeline.batches(names, params)

    open_files.get_concrete_function()
    return open_files


def read(
    make_data: Callable[[], tf.data.Dataset],
    count: int,
    place: str,
    names: Sequence[str],
    compression: str,
) -> Iterator[Batch]:
    """Yield `count` batches of files, by a pipeline that is opened with the first and ends with the
    last, which comes only when nothing follows: that completes a cache.

    Raises ProgramError: 65 when more batches follow or a file is damaged, 66 when one is gone.
    """
    try:
        batches = iter(make_data())
        for number, batch in enumerate(batches, 1):
            if number == count and next(batches, None) is not None:
                message = f"{place}: more than {count} batches in the files"
                raise ProgramError(EXIT_BAD_DATA, message)
            yield batch
    except tf.errors.OpError as error:
        code, said = input_errors.describe(error, names, compression)
        raise ProgramError(code, f"{place}: {said}") from None


def dummy_batch(params: dict[str, Any], rank: int, seed: int) -> Batch:
    """Return a batch of random numbers, like the data set's in shape and range, on the device."""
    numbers = np.random.default_rng([seed, rank])
    shape = (params["batch_size"], *params["sample_shape"])
    x = numbers.random(shape, np.float32) * np.float32(2.0)
    y = numbers.uniform(-1.0, 1.0, (params["batch_size"], dataset.TARGETS)).astype(np.float32)
    return tf.identity(x), tf.identity(y)
