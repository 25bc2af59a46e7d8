"""The pipelines that are compared, each made of tf.data's own transformations.

tf.data rewrites pipelines: it maps in parallel and prefetches where the program does neither. All
of this is off here, else a serial pipeline would not be one.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import tensorflow as tf

from cosmoflow_data import pipeline
from cosmoflow_data.dataset import TARGETS
from input_pipeline import python_samples
from input_pipeline.python_samples import Task

SEED = 7
# What each pipeline does besides reading, mapping and batching.
TECHNIQUES = {
    "serial": frozenset(),
    "prefetch": frozenset({"prefetch"}),
    "parallel_map": frozenset({"parallel_map"}),
    "interleave": frozenset({"interleave"}),
    "combined": frozenset({"prefetch", "parallel_map", "interleave"}),
    "cached": frozenset({"prefetch", "parallel_map", "interleave", "cache"}),
    # Python in place of tf.data: records from a generator, samples from a function that
    # parallel_map calls, samples from processes.
    "generator": frozenset({"generator"}),
    "py_function": frozenset({"parallel_map", "py_function"}),
    "processes": frozenset({"processes", "prefetch"}),
}  # fmt: skip


def make(
    files: Sequence[str], params: dict[str, Any], rank: int, workers: Executor | None = None
) -> tf.data.Dataset:
    """Return batches (x float32 ``[batch, *sample_shape]``, y float32 ``[batch, 4]``) of `files`.

    Each iterator over it is an epoch, with another order of files and samples. All ranks draw that
    order from the same seed, so that their shares of an epoch, every ``ranks``-th element, are
    disjoint. `workers` make the samples of the pipeline ``processes``.
    """
    does, when = TECHNIQUES[params["pipeline"]], params["shard"]

    def share(data: tf.data.Dataset, now: str) -> tf.data.Dataset:
        return data.shard(params["ranks"], rank) if now == when else data

    names = share(tf.data.Dataset.from_tensor_slices(list(files)), "before_shuffle")
    names = names.shuffle(len(files), SEED, reshuffle_each_iteration=True)
    names = share(names, "after_shuffle")
    if workers is not None:
        data = _from_processes(names, params, workers)
    else:
        ordered = when == "after_reading"  # the order has to be the same on every rank
        data = _read(names, params, ordered)
        if "cache" not in does:  # records are smaller than what they are mapped to
            data = share(_shuffled(data, params), "after_reading")
        decode = _python_decoder(params) if "py_function" in does else _decoder(params)
        parallel = {"num_parallel_calls": pipeline.or_auto(params["parallel_calls"])}
        parallel["deterministic"] = ordered
        data = data.map(decode, **(parallel if "parallel_map" in does else {}))
        if "cache" in does:
            data = _shuffled(data.cache(), params)
    data = data.batch(params["batch_size"], drop_remainder=True)
    if "prefetch" in does:
        data = data.prefetch(pipeline.or_auto(params["buffer_batches"]))
    return data.with_options(_as_written(params))


def _read(names: tf.data.Dataset, params: dict[str, Any], ordered: bool) -> tf.data.Dataset:
    """Return the records of files, in an order that is the same on every rank if `ordered`."""
    does = TECHNIQUES[params["pipeline"]]
    compression = "" if params["compression"] == "none" else params["compression"]

    def opened(name: tf.Tensor) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(name, compression)

    if "generator" in does:
        return _from_generator(names, params)
    if "interleave" not in does:
        return names.flat_map(opened)
    return names.interleave(
        opened,
        cycle_length=params["parallel_calls"] or None,
        num_parallel_calls=pipeline.or_auto(params["parallel_calls"]),
        deterministic=ordered,
    )


def _from_generator(names: tf.data.Dataset, params: dict[str, Any]) -> tf.data.Dataset:
    """Return the records of all files as a generator of Python reads them, one after the other."""

    def generate() -> Iterator[bytes]:
        for name in names.as_numpy_iterator():
            yield from python_samples.records(name.decode(), params["compression"])

    return tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.string))


def processes(params: dict[str, Any]) -> int:
    """Return how many processes make samples."""
    return params["parallel_calls"] or len(os.sched_getaffinity(0))


def _from_processes(
    names: tf.data.Dataset, params: dict[str, Any], workers: Executor
) -> tf.data.Dataset:
    """Return samples that processes make, in an order that is drawn before."""
    shape, settings = tuple(params["sample_shape"]), (params["map_passes"], params["compression"])

    def places(name: tf.Tensor) -> tf.data.Dataset:
        return tf.data.Dataset.range(params["samples_per_file"]).map(lambda place: (name, place))

    order = _shuffled(names.flat_map(places), params)

    def generate() -> Iterator[Any]:
        tasks = (
            Task(name.decode(), int(place), shape, *settings)
            for name, place in order.as_numpy_iterator()
        )
        yield from python_samples.samples(workers, tasks, 2 * processes(params))

    signature = (tf.TensorSpec(shape, tf.float32), tf.TensorSpec([TARGETS], tf.float32))
    return tf.data.Dataset.from_generator(generate, output_signature=signature)


def _python_decoder(params: dict[str, Any]) -> Any:
    """Return what maps a record to a sample in Python, under its global lock."""
    shape, passes = params["sample_shape"], params["map_passes"]

    def decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        x, y = tf.py_function(
            lambda value: python_samples.mapped(value.numpy(), shape, passes),
            [record],
            [tf.float32, tf.float32],
        )
        return tf.ensure_shape(x, shape), tf.ensure_shape(y, [TARGETS])

    return decode


def _shuffled(data: tf.data.Dataset, params: dict[str, Any]) -> tf.data.Dataset:
    if params["shuffle_samples"] == 1:
        return data
    return data.shuffle(params["shuffle_samples"], SEED, reshuffle_each_iteration=True)


def _decoder(params: dict[str, Any]) -> Any:
    """Return what maps a record to a sample."""

    def decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        x, y = pipeline.parse(record, params["sample_shape"])
        for number in range(params["map_passes"]):
            x = tf.math.log(x + 1.0) if number == 0 else tf.math.log(tf.abs(x) + 1.0)
            mean, variance = tf.nn.moments(x, axes=[0, 1, 2, 3])
            x = (x - mean) * tf.math.rsqrt(variance + 1e-6)
        return x, y

    return decode


def _as_written(params: dict[str, Any]) -> tf.data.Options:
    """Return options under which tf.data does what the pipeline says, and nothing else."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.map_parallelization = False
    options.autotune.enabled = not (params["parallel_calls"] and params["buffer_batches"])
    return options
