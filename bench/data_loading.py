"""Is the data-loading benchmark's pipeline fast, and what does measuring cost?

Compares the pipeline, on default settings, with hand-written tf.data loops over the same files:
one rank, page cache warm, uncompressed. All take turns in one process, in a new order each round.
A ratio is the median over rounds of loop time / pipeline time, above 1 where the pipeline wins. The
fastest loop then meets the pipeline again in as many pairs: being the fastest of many is partly
luck. Last, the cost of the measuring code: epochs without files, timed by the same code.

    python -m bench.data_loading [--rounds N] [--edge 64] [--samples 128]
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, ratio, run, take_turns

BENCHMARKS = Path(__file__).resolve().parents[1] / "workflow" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from harness import import_without  # before TensorFlow: it silences its start

import_without("pandas", "scipy", "PIL")

import tensorflow as tf
import yaml

from cosmoflow_data import dataset, pipeline
from harness import ranks
from harness.epochs import time_epochs
from harness.staging import file_path

BATCH = 4
THROUGHPUT_BOUND, COST_BOUND = 0.9, 1.0  # the latter in %
Loop = Callable[[dict[str, tf.Tensor]], int]


def defaults() -> dict:
    """Return the benchmark's default parameters."""
    text = (BENCHMARKS / "data_loading" / "benchmark.yaml").read_text()
    return {name: spec["default"] for name, spec in yaml.safe_load(text)["parameters"].items()}


def hand_written(shape: list[int]) -> dict[str, Loop]:
    """Return competing loops: each reads the files of both splits and returns its sample count."""
    features = {
        "x": tf.io.FixedLenFeature([], tf.string),
        "y": tf.io.FixedLenFeature([4], tf.float32),
    }

    def decoded(record):
        example = tf.io.parse_single_example(record, features)
        x = tf.reshape(tf.io.decode_raw(example["x"], tf.int16), shape)
        return tf.math.log(tf.cast(x, tf.float32) + 1.0), example["y"]

    def many(records):
        example = tf.io.parse_example(records, features)
        x = tf.reshape(tf.io.decode_raw(example["x"], tf.int16), [-1, *shape])
        return tf.math.log(tf.cast(x, tf.float32) + 1.0), example["y"]

    auto = tf.data.AUTOTUNE

    def plain(files, reads=None, parallel=auto, ahead=auto, ordered=True):
        data = tf.data.TFRecordDataset(files, num_parallel_reads=reads)
        data = data.map(decoded, num_parallel_calls=parallel)
        data = data.batch(BATCH, drop_remainder=True).prefetch(ahead)
        settings = tf.data.Options()
        settings.deterministic = ordered
        return data.with_options(settings)

    def batched(files):
        data = tf.data.TFRecordDataset(files, num_parallel_reads=2).batch(BATCH)
        return data.map(many, num_parallel_calls=auto).prefetch(auto)

    def graph(make) -> Loop:
        """Drain with a loop inside a tf.function."""

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def drain(names):
            samples, total = 0, 0.0
            for x, y in make(names):
                total += tf.reduce_sum(x) + tf.reduce_sum(y)
                samples += tf.shape(x)[0]
            return samples, total

        return lambda files: sum(int(drain(names)[0]) for names in files.values())

    return {
        "plain loop": graph(plain),
        "decode batches": graph(batched),
        "2 reads, 4 maps, prefetch 2, unordered": graph(lambda f: plain(f, 2, 4, 2, False)),
        "autotuned reads, unordered": graph(lambda f: plain(f, auto, auto, auto, False)),
    }


def compare(loops: dict[str, Loop], files: dict[str, tf.Tensor], rounds: int) -> dict[str, list]:
    """Time every loop once per round, in random order; seconds by loop, after one warm-up each."""
    expected = sum(len(names) for names in files.values())
    for name, loop in loops.items():
        if loop(files) != expected:
            raise SystemExit(f"{name} did not read {expected} samples")
    return take_turns({name: partial(loop, files) for name, loop in loops.items()}, rounds)


def measuring_cost(drain: pipeline.Drain, epochs: int) -> float:
    """Return the median seconds of an epoch that reads nothing, timed as the benchmark does: it
    makes, exhausts and destroys both pipelines without a file in them."""
    nothing = tf.constant([], tf.string)

    def work(_: None) -> bool:
        drain(nothing)
        drain(nothing)
        return True

    times = time_epochs(epochs, lambda _: None, work, ranks.barrier)
    return statistics.median(times.total)


def measure(rounds: int = 15, edge: int = 64, samples: int = 128) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds, on so many training samples of edge x edge x edge x 4 values."""
    shape = [edge, edge, edge, 4]
    fmt = dataset.Format(tuple(shape))
    tf.get_logger().setLevel("ERROR")  # it takes the loops' functions for retracing
    ranks.use("tensorflow")
    ranks.start(1)
    counts = {"train": samples, "valid": samples // 4 // BATCH * BATCH}
    with tempfile.TemporaryDirectory(prefix="bench-data-loading-") as name:
        folder = Path(name)
        stage = [sys.executable, BENCHMARKS, "cosmoflow_data.dataset", "--out", folder]
        stage += ["--train", counts["train"], "--valid", counts["valid"], "--workers", 2]
        stage += ["--params", json.dumps(fmt.describe())]
        subprocess.run([str(word) for word in stage], check=True, stdout=subprocess.DEVNULL)
        files = {
            split: tf.constant([file_path(folder, split, i) for i in range(count)])
            for split, count in counts.items()
        }
        params = defaults() | {"sample_shape": shape, "batch_size": BATCH}
        drain = pipeline.make_drain(params)
        loops = {"ours": lambda files: sum(drain(names)[0] for names in files.values())}
        loops |= hand_written(shape)
        seconds = compare(loops, files, rounds)
        medians = {name: statistics.median(times) for name, times in seconds.items()}
        rival = min((name for name in loops if name != "ours"), key=medians.get)
        final = compare({name: loops[name] for name in ("ours", rival)}, files, rounds)
        cost = measuring_cost(drain, 100)
    total = sum(counts.values())
    epoch = statistics.median(seconds["ours"] + final["ours"])
    yield figure("our pipeline", total / epoch, "1/s")
    over = ratio(final[rival], final["ours"])
    name = f"throughput over the best hand-written loop ({rival})"
    yield figure(name, over, "x", THROUGHPUT_BOUND, "higher")
    # An epoch of the published study, 320 samples of 16 MiB, at the rate measured here.
    default_epoch = epoch * 320 * 128**3 * 4 / (total * edge**3 * 4)
    share = 100 * cost / default_epoch
    yield figure("measuring cost of the default epoch", share, "%", COST_BOUND)
    ranks.stop()


if __name__ == "__main__":
    run(measure)
