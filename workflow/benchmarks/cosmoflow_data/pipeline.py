"""The tf.data pipeline, and the function that drains it and touches every sample.

Written for speed, by measurement (``bench/data_loading.py`` repeats it): records are decoded one by
one in parallel and then batched, and the whole epoch is one call of one graph function, so that no
Python runs per batch. Decoding whole batches instead copies less but is slower: its large
temporary arrays leave the processor's caches between one operation and the next.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from cosmoflow_data import dataset

# Reads files; returns the number of samples, and the sums over all x and all y.
Drain = Callable[[tf.Tensor], tuple[int, float, float]]


def or_auto(count: int) -> int:
    """Return a count, of which 0 means tf.data's AUTOTUNE."""
    return count or tf.data.AUTOTUNE


def parse(record: tf.Tensor, shape: Sequence[int]) -> tuple[tf.Tensor, tf.Tensor]:
    """Return counts x, float32 of `shape`, and y ``[4]`` of a record."""
    features = {
        "x": tf.io.FixedLenFeature([], tf.string),
        "y": tf.io.FixedLenFeature([dataset.TARGETS], tf.float32),
    }
    example = tf.io.parse_single_example(record, features)
    x = tf.reshape(tf.io.decode_raw(example["x"], tf.int16), shape)
    return tf.cast(x, tf.float32), example["y"]


def batches(files: tf.Tensor, params: dict[str, Any]) -> tf.data.Dataset:
    """Return batches (x float32 ``[batch, *sample_shape]``, y float32 ``[batch, 4]``) of `files`.

    x is the stored count, as log(x + 1) with `apply_log`. The order of samples is not fixed unless
    `deterministic`, which not all benchmarks have: nothing waits for a slow file while another one
    is ready.
    """

    def decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        x, y = parse(record, params["sample_shape"])
        return (tf.math.log(x + 1.0) if params["apply_log"] else x), y

    data = tf.data.TFRecordDataset(
        files,
        compression_type="" if params["compression"] == "none" else params["compression"],
        num_parallel_reads=or_auto(params["parallel_reads"]),
    )
    data = data.map(decode, num_parallel_calls=or_auto(params["map_parallelism"]))
    data = data.batch(params["batch_size"], drop_remainder=True)
    data = data.prefetch(or_auto(params["prefetch"]))
    settings = tf.data.Options()
    settings.deterministic = params.get("deterministic", False)
    return data.with_options(settings)


def make_drain(params: dict[str, Any]) -> Drain:
    """Return a function that reads files (a string tensor) once, from opening to the last sample.

    It is traced here, without reading anything. Each call builds the pipeline, its iterator and its
    threads and has destroyed them when it returns: a call can only ever do its own work.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def drain(files: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        samples = tf.zeros([], tf.int64)
        sum_x = sum_y = tf.zeros([], tf.float64)
        # An iterator of the graph's own: ``data.reduce`` or a loop over the data set itself would
        # compile the loop's body in each call, 8 ms more per epoch.
        for x, y in iter(batches(files, params)):
            samples += tf.shape(y, tf.int64)[0]
            sum_x += tf.cast(tf.reduce_sum(x), tf.float64)
            sum_y += tf.reduce_sum(tf.cast(y, tf.float64))
        return samples, sum_x, sum_y

    traced = drain.get_concrete_function()

    def call(files: tf.Tensor) -> tuple[int, float, float]:
        samples, sum_x, sum_y = (value.numpy().item() for value in traced(files))
        return samples, sum_x, sum_y

    call(tf.constant([], tf.string))  # starts the thread pools, reads nothing
    return call
