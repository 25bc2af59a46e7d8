"""The pipelines that are compared, each made of tf.data's own transformations.

tf.data rewrites pipelines: it maps in parallel and prefetches where the program does neither. All
of this is off here, else a serial pipeline would not be one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

TARGETS = 4
SEED = 7
# What each pipeline does besides reading, mapping and batching.
TECHNIQUES = {
    "serial": frozenset(),
    "prefetch": frozenset({"prefetch"}),
    "parallel_map": frozenset({"parallel_map"}),
    "interleave": frozenset({"interleave"}),
    "combined": frozenset({"prefetch", "parallel_map", "interleave"}),
    "cached": frozenset({"prefetch", "parallel_map", "interleave", "cache"}),
}  # fmt: skip


@dataclass(frozen=True)
class Share:
    """Which part of the data set is a rank's, and when it is taken (parameter ``shard``)."""

    rank: int
    ranks: int
    when: str

    def of(self, data: tf.data.Dataset) -> tf.data.Dataset:
        """Return every ``ranks``-th element, beginning with number ``rank``."""
        return data.shard(self.ranks, self.rank)


def make(files: Sequence[str], params: dict[str, Any], share: Share) -> tf.data.Dataset:
    """Return batches (x float32 ``[batch, *sample_shape]``, y float32 ``[batch, 4]``) of `files`.

    Each iterator over it is an epoch, with another order of files and samples. All ranks draw that
    order from the same seed, so that their shares of an epoch are disjoint.
    """
    does = TECHNIQUES[params["pipeline"]]
    calls = params["parallel_calls"] or tf.data.AUTOTUNE
    compression = "" if params["compression"] == "none" else params["compression"]
    whole = share.when == "after_reading"  # the order has to be the same on every rank
    names = tf.data.Dataset.from_tensor_slices(list(files))
    if share.when == "before_shuffle":
        names = share.of(names)
    names = names.shuffle(len(files), SEED, reshuffle_each_iteration=True)
    if share.when == "after_shuffle":
        names = share.of(names)

    def opened(name: tf.Tensor) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(name, compression)

    if "interleave" in does:
        data = names.interleave(
            opened,
            cycle_length=params["parallel_calls"] or None,
            num_parallel_calls=calls,
            deterministic=whole,
        )
    else:
        data = names.flat_map(opened)
    if whole:
        data = share.of(_shuffled(data, params))
    elif "cache" not in does:  # records are smaller than what they are mapped to
        data = _shuffled(data, params)
    if "parallel_map" in does:
        data = data.map(_decoder(params), num_parallel_calls=calls, deterministic=whole)
    else:
        data = data.map(_decoder(params))
    if "cache" in does:
        data = _shuffled(data.cache(), params)
    data = data.batch(params["batch_size"], drop_remainder=True)
    if "prefetch" in does:
        data = data.prefetch(params["buffer_batches"] or tf.data.AUTOTUNE)
    return data.with_options(_as_written(params))


def _shuffled(data: tf.data.Dataset, params: dict[str, Any]) -> tf.data.Dataset:
    if params["shuffle_samples"] == 1:
        return data
    return data.shuffle(params["shuffle_samples"], SEED, reshuffle_each_iteration=True)


def _decoder(params: dict[str, Any]) -> Any:
    """Return what maps a record to a sample."""
    features = {
        "x": tf.io.FixedLenFeature([], tf.string),
        "y": tf.io.FixedLenFeature([TARGETS], tf.float32),
    }

    def decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        example = tf.io.parse_single_example(record, features)
        x = tf.reshape(tf.io.decode_raw(example["x"], tf.int16), params["sample_shape"])
        x = tf.cast(x, tf.float32)
        for number in range(params["map_passes"]):
            x = tf.math.log(x + 1.0) if number == 0 else tf.math.log(tf.abs(x) + 1.0)
            mean, variance = tf.nn.moments(x, axes=[0, 1, 2, 3])
            x = (x - mean) * tf.math.rsqrt(variance + 1e-6)
        return x, example["y"]

    return decode


def _as_written(params: dict[str, Any]) -> tf.data.Options:
    """Return options under which tf.data does what the pipeline says, and nothing else."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.map_parallelization = False
    options.autotune.enabled = not (params["parallel_calls"] and params["buffer_batches"])
    return options
