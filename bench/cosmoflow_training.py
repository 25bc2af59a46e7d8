"""How fast is a training step of CosmoFlow's network, and what do measuring and input cost?

Each comparison takes turns in one process, in a new order each round; a ratio is the median over
rounds, of seconds a step. Compared with the program's loop over a batch in memory (`dummy`) are
  bare       the same step without clocks, learning rate and sums: the rest is the cost of measuring
  plain      a tf.function written by hand, layers in the original's order, Keras's SGD
  fit        Keras's model.fit of that network
  ordered    the program's loop over TFRecords, opened again each turn, samples in the files' order
  unordered  the same with samples as they are ready (`deterministic: false`)
One process on a CPU, page cache warm.

    python -m bench.cosmoflow_training [--json FILE] [--rounds N] [--steps N]
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, ratio, take_turns, write_json

BENCHMARKS = Path(__file__).resolve().parents[1] / "workflow" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # before this folder, whose cosmoflow_training.py this is

from harness import import_without  # before TensorFlow: it silences its start

import_without("pandas", "scipy", "PIL")

import tensorflow as tf
import yaml

from cosmoflow_training import inputs
from cosmoflow_training.trainer import Trainer
from harness import ranks, tf_training

# Sample shape, batch size, convolutions, filters, kernel size; and steps in a turn, by --steps.
CASES = (
    (((32, 32, 32, 4), 8, 4, 8, 2), 8),
    (((64, 64, 64, 4), 2, 5, 32, 2), 1),
    (((64, 64, 64, 4), 2, 5, 32, 3), 1),
)
SAMPLES_PER_FILE = 4
COST_BOUND = 1.0  # % of a step
RATE = 1e-4
Loop = Callable[[], Any]


def parameters(case: tuple, steps: int, **changes: Any) -> dict[str, Any]:
    """Return the benchmark's parameters for a case, all others at their defaults."""
    text = (BENCHMARKS / "cosmoflow_training" / "benchmark.yaml").read_text()
    values = {name: spec["default"] for name, spec in yaml.safe_load(text)["parameters"].items()}
    names = ("sample_shape", "batch_size", "conv_layers", "filters", "kernel_size")
    values |= dict(zip(names, case, strict=True))
    values |= {"samples_per_rank": steps * values["batch_size"], "validation_samples_per_rank": 0}
    # A rate of the warm-up, which is set again at each step.
    values |= {"base_learning_rate": RATE, "samples_per_file": SAMPLES_PER_FILE}
    return values | {"warmup_epochs": 10**6} | changes


def plain_network(params: dict[str, Any]) -> tf.keras.Model:
    """Return the network as the original has it: bias and LeakyReLU before the pooling."""
    layers = tf.keras.layers
    network = tf.keras.Sequential([tf.keras.Input(params["sample_shape"])])
    for number in range(params["conv_layers"]):
        width = params["filters"] * 2**number
        network.add(layers.Conv3D(width, params["kernel_size"], padding="same"))
        network.add(layers.LeakyReLU())
        network.add(layers.MaxPool3D(pool_size=2))
    network.add(layers.Flatten())
    for units in params["dense_units"]:
        network.add(layers.Dense(units))
        network.add(layers.LeakyReLU())
    network.add(layers.Dense(4, activation="tanh"))
    network.add(layers.Lambda(lambda x: x * 1.2))
    return network


def plain_loop(params: dict[str, Any], batch: tuple, steps: int) -> Loop:
    """Return a loop of steps as one would write them without this project."""
    network = plain_network(params)
    optimizer = tf.keras.optimizers.SGD(RATE, momentum=0.9)

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(network(x, training=True) - y))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
        return loss

    def loop() -> None:
        for _ in range(steps):
            step(*batch).numpy()

    return loop


def fit_loop(params: dict[str, Any], batch: tuple, steps: int) -> Loop:
    """Return Keras's own loop over a batch in memory."""
    network = plain_network(params)
    network.compile(tf.keras.optimizers.SGD(RATE, momentum=0.9), "mse", metrics=["mae"])
    data = tf.data.Dataset.from_tensors(batch).cache().repeat()
    return lambda: network.fit(data, steps_per_epoch=steps, verbose=0)


def own_loops(case: tuple, steps: int, folder: Path) -> tuple[dict[str, Loop], dict[str, Any]]:
    """Return the program's loops by name, with the parameters of the first."""
    params = parameters(case, steps, input="dummy")
    trainer = Trainer(params, inputs.make(params, None, 0, 1))
    batch = next(iter(trainer.epochs("train", 0)))
    numbers = itertools.count()

    def bare() -> None:
        for _ in range(steps):
            trainer.step(*batch)[0].numpy()

    def over(deterministic: bool) -> Loop:
        given = parameters(case, steps, deterministic=deterministic)
        epochs = inputs.make(given, folder, 0, 1)

        def loop() -> None:
            tf_training.run_part(epochs("train", next(numbers)), trainer.step, steps)

        return loop

    loops = {"dummy": lambda: trainer.train(next(numbers)), "bare": bare}
    return loops | {"ordered": over(True), "unordered": over(False)}, params


def stage(params: dict[str, Any], folder: Path) -> None:
    """Make the files that a turn reads."""
    names = ("sample_shape", "samples_per_file", "compression")
    files = params["samples_per_rank"] // SAMPLES_PER_FILE
    words = [sys.executable, BENCHMARKS, "cosmoflow_data.stage", "--out", folder]
    words += ["--train", files, "--valid", 0]
    words += ["--params", json.dumps({name: params[name] for name in names})]
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def code_cost(steps: int = 5000) -> float:
    """Return seconds that the program's loop adds to a step, by steps that do nothing."""
    params = parameters(((2, 2, 2, 1), 1, 1, 1, 1), steps, input="dummy")
    trainer = Trainer(params, inputs.make(params, None, 0, 1))
    batch = next(iter(trainer.epochs("train", 0)))
    outcome = tf.constant([0.0, 0.0]), tf.zeros([4], tf.float64)
    trainer.step = lambda *_: outcome

    def bare() -> None:
        for _ in range(steps):
            trainer.step(*batch)[0].numpy()

    seconds = take_turns({"own": lambda: trainer.train(0), "bare": bare}, 5, steps)
    return statistics.median(seconds["own"]) - statistics.median(seconds["bare"])


def measure(case: tuple, steps: int, rounds: int, cost: float) -> dict[str, Any]:
    """Return the report on one case."""
    with tempfile.TemporaryDirectory(prefix="bench-cosmoflow-") as folder:
        loops, params = own_loops(case, steps, Path(folder))
        stage(params, Path(folder))
        batch = inputs.dummy_batch(params, 0, 1)
        loops |= {"plain": plain_loop(params, batch, steps), "fit": fit_loop(params, batch, steps)}
        seconds = take_turns(loops, rounds, steps)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    return {
        "case": dict(zip(("shape", "batch", "layers", "filters", "kernel"), case, strict=True)),
        "samples_per_second": {name: case[1] / each for name, each in medians.items()},
        "best_samples_per_second": {name: case[1] / min(seconds[name]) for name in seconds},
        "measuring_cost": ratio(seconds["dummy"], seconds["bare"]) - 1,
        "code_cost": cost / medians["bare"],
        "plain_over_own": ratio(seconds["plain"], seconds["dummy"]),
        "fit_over_own": ratio(seconds["fit"], seconds["dummy"]),
        "tfrecords_over_dummy": ratio(seconds["ordered"], seconds["dummy"]),
        "ordered_over_unordered": ratio(seconds["ordered"], seconds["unordered"]),
    }


def print_report(report: dict[str, Any]) -> None:
    """Print the table of loops and one line for each ratio."""
    for each in report["cases"]:
        print(", ".join(f"{name} {value}" for name, value in each["case"].items()))
        for loop, speed in each["samples_per_second"].items():
            best = each["best_samples_per_second"][loop]
            print(f"  {loop:<10}{speed:>9.1f} samples/s, best {best:.1f}")
        print(
            f"  measuring costs {each['measuring_cost']:.2%} of the bare loop"
            f" (target: {COST_BOUND:g} %; {each['code_cost']:.3%} by steps that do nothing)"
        )
        print(f"  time of a plain tf.function / ours: {each['plain_over_own']:.3f}")
        print(f"  time of Keras's model.fit / ours: {each['fit_over_own']:.3f}")
        print(f"  time over TFRecords / over dummy input: {each['tfrecords_over_dummy']:.3f}")
        print(f"  time of samples in order / as they come: {each['ordered_over_unordered']:.3f}")


def rows_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures of a case."""
    case = report["case"]
    name = f"{'x'.join(map(str, case['shape']))}, batch {case['batch']}, kernel {case['kernel']}"
    return [
        # The cost as a difference of loops is mostly their noise: without a bound.
        figure(f"{name}: ours / the bare loop", 1 + report["measuring_cost"], "x"),
        figure(
            f"{name}: code that measures, of a step", 100 * report["code_cost"], "%", COST_BOUND
        ),
        figure(f"{name}: plain tf.function / ours", report["plain_over_own"], "x"),
        figure(f"{name}: Keras's fit / ours", report["fit_over_own"], "x"),
        figure(f"{name}: TFRecords / dummy input", report["tfrecords_over_dummy"], "x"),
        figure(f"{name}: in order / as ready", report["ordered_over_unordered"], "x"),
    ]


def main() -> int:
    """Measure, print the report and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the result to this file")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=4, help="in each turn; an even number")
    args = parser.parse_args()

    ranks.use("tensorflow")
    ranks.start(1)
    cost = code_cost()
    cases = [measure(case, args.steps * many, args.rounds, cost) for case, many in CASES]
    report = {"rounds": args.rounds, "steps": args.steps, "cases": cases}
    print_report(report)
    report["figures"] = [row for case in cases for row in rows_of(case)]
    write_json(report, args.json)
    ranks.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
