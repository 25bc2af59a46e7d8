"""Is the CNN training step fast, and what does measuring it cost?

(a) The step loop of the benchmark against the bare loop: the same step without time stamps in its
graph, called without clocks and without looking at the loss. (b) The benchmark against the same
network written for a TensorFlow 1 session in the plainest way, which fetches the update and the
loss in each step. (c) With --tf-cnn-benchmarks, whole programs: the benchmark against
tf_cnn_benchmarks with the same settings, by the images/s that each says itself. All with one
process on a CPU, float32, NHWC, SGD with L2 decay of all variables. Each comparison takes turns, in
a new order each round; a ratio is the median over rounds of theirs / ours in seconds a step, above
1 where ours is faster.

    python -m bench.cnn_training [--json FILE] [--rounds N] [--steps N] [--tf-cnn-benchmarks PATH]
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from bench.lib.pairs import figure, ratio, take_turns, write_json

BENCHMARKS = Path(__file__).resolve().parents[1] / "workflow" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # before this folder, whose cnn_training.py this is

from harness import import_without  # before TensorFlow: it silences its start

import_without("pandas", "scipy", "PIL")

import tensorflow as tf
import yaml

from cnn_training import cluster, updates
from cnn_training.trainer import take
from harness import ranks, spans, tf_spans

CASES = (("resnet20", 32), ("alexnet", 128))
RATE, DECAY = 0.01, 4e-5
COST_BOUND = 1.0  # % of a step
STAMPS = 4  # of a step
Loop = Callable[[int], Any]


def parameters(model: str, batch_size: int, steps: int = 1) -> dict[str, Any]:
    """Return the benchmark's parameters for a case, all others at their defaults."""
    text = (BENCHMARKS / "cnn_training" / "benchmark.yaml").read_text()
    values = {name: spec["default"] for name, spec in yaml.safe_load(text)["parameters"].items()}
    changed = {"model": model, "data_set": "cifar10", "batch_size": batch_size, "batches": steps}
    return values | changed | {"learning_rate": RATE, "weight_decay": DECAY}


class Network:
    """The networks of tf_cnn_benchmarks in TensorFlow 1's style: variables are made as they come.

    NHWC, float32; batch normalisation updates no moving averages here, as they cost next to nothing
    besides the rest and none reads them.
    """

    def __init__(self) -> None:
        """Start without variables."""
        self.variables: list[Any] = []

    def weights(self, shape: list[int], value: float | None = None) -> Any:
        """Make a variable, constant or He normal."""
        fan_in = 1
        for size in shape[:-1]:
            fan_in *= size
        first = (
            tf.random.normal(shape, stddev=(2 / fan_in) ** 0.5, seed=1)
            if value is None
            else tf.fill(shape, value)
        )
        self.variables.append(tf.compat.v1.Variable(first))
        return self.variables[-1]

    def conv(self, x: Any, filters: int, size: int, stride: int = 1, bias: bool = False) -> Any:
        """Convolve, with bias and ReLU where asked for."""
        x = tf.nn.conv2d(x, self.weights([size, size, x.shape[-1], filters]), stride, "SAME")
        return tf.nn.relu(tf.nn.bias_add(x, self.weights([filters], 0.0))) if bias else x

    def norm(self, x: Any) -> Any:
        """Normalise by the batch."""
        scale, offset = self.weights([x.shape[-1]], 1.0), self.weights([x.shape[-1]], 0.0)
        return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-5)[0]

    def dense(self, x: Any, units: int) -> Any:
        """Append a fully connected layer."""
        return tf.nn.bias_add(x @ self.weights([x.shape[-1], units]), self.weights([units], 0.0))

    def resnet20(self, x: Any) -> Any:
        """CIFAR-10's residual network of 20 layers."""
        x = self.norm(self.conv(x, 16, 3))
        for filters in (16, 32, 64):
            for block in range(3):
                past, stride = x, 2 if filters > 16 and block == 0 else 1
                if stride == 2:
                    edge = (filters - x.shape[-1]) // 2
                    past = tf.nn.avg_pool2d(x, 1, 2, "VALID")
                    past = tf.pad(past, [[0, 0], [0, 0], [0, 0], [edge, edge]])
                x = tf.nn.relu(self.norm(self.conv(x, filters, 3, stride)))
                x = tf.nn.relu(past + self.norm(self.conv(x, filters, 3)))
        return self.dense(tf.reduce_mean(x, [1, 2]), 10)

    def alexnet(self, x: Any) -> Any:
        """CIFAR-10's AlexNet."""

        def lrn(x: Any) -> Any:
            return tf.nn.lrn(x, depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75)

        x = lrn(tf.nn.max_pool2d(self.conv(x, 64, 5, bias=True), 3, 2, "SAME"))
        x = tf.nn.max_pool2d(lrn(self.conv(x, 64, 5, bias=True)), 3, 2, "SAME")
        x = tf.reshape(x, [x.shape[0], -1])
        for units in (384, 192):
            x = tf.nn.relu(self.dense(x, units))
        return self.dense(x, 10)


def session_loop(model: str, batch_size: int) -> Loop:
    """Return a loop of training steps in a TensorFlow 1 session, images being a variable of it."""
    graph, network = tf.Graph(), Network()
    with graph.as_default():
        images = tf.compat.v1.Variable(tf.random.normal([batch_size, 32, 32, 3]), trainable=False)
        labels = tf.compat.v1.Variable(
            tf.random.uniform([batch_size], maxval=10, dtype=tf.int32), trainable=False
        )
        logits = getattr(network, model)(tf.identity(images))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        decay = tf.add_n([tf.nn.l2_loss(each) for each in network.variables])
        loss = tf.reduce_mean(losses) + DECAY * decay
        train = tf.compat.v1.train.GradientDescentOptimizer(RATE).minimize(loss)
        start = tf.compat.v1.global_variables_initializer()
    session = tf.compat.v1.Session(graph=graph)
    session.run(start)

    def loop(steps: int) -> None:
        for _ in range(steps):
            session.run((train, loss))

    return loop


def own_loops(model: str, batch_size: int) -> tuple[Loop, Loop]:
    """Return the benchmark's loop of steps, and the bare one, whose graph takes no stamps."""
    params = parameters(model, batch_size)
    place = cluster.Place(0, 1, True, "CPU", ["/device:CPU:0"], (0, 0))
    trainer = updates.make(params, place, None)
    with mock.patch.object(tf_spans, "method", lambda: spans.NONE):
        step = updates.make(params, place, None).graph()

    def bare(steps: int) -> None:
        for _ in range(steps):
            step()

    return trainer.run, bare


def code_cost(steps: int = 20000) -> float:
    """Return the seconds that clocks and loss add to a step, by steps that do nothing."""
    ready = tf.constant(1.0), tf.zeros([3], tf.float64)

    def nothing() -> tuple[tf.Tensor, tf.Tensor]:
        return ready

    def bare(count: int) -> None:
        for _ in range(count):
            nothing()

    loops = {"own": lambda count: take(count, nothing), "bare": bare}
    seconds = compare(loops, steps, 5)
    return statistics.median(seconds["own"]) - statistics.median(seconds["bare"])


def stamp_cost(stamps: int = 200, rounds: int = 40) -> float:
    """Return the seconds of a time stamp in a graph, by a chain of additions with and without."""

    def chain(taken: bool) -> Loop:
        def body(x: tf.Tensor) -> tf.Tensor:
            for _ in range(stamps):
                x = x + 1.0
                if taken:
                    _, (x,) = tf_spans.begin(x)
            return x

        graph, start = tf.function(body), tf.constant(0.0)

        def loop(steps: int) -> None:
            for _ in range(steps):
                graph(start)

        return loop

    seconds = compare({"stamped": chain(True), "bare": chain(False)}, 1, rounds)
    each = [(a - b) / stamps for a, b in zip(seconds["stamped"], seconds["bare"], strict=True)]
    return statistics.median(each)


def at_least(ones: list[float], others: list[float]) -> float:
    """Return the lower 95 % bound of the median over rounds of one / other, by order statistics."""
    ratios = sorted(a / b for a, b in zip(ones, others, strict=True))
    place = int(len(ratios) / 2 - 0.98 * len(ratios) ** 0.5)
    return ratios[max(place, 0)]


def compare(loops: dict[str, Loop], steps: int, rounds: int) -> dict[str, list[float]]:
    """Let the loops take turns; seconds a step by loop."""
    return take_turns({name: partial(loop, steps) for name, loop in loops.items()}, rounds, steps)


def run_benchmark(model: str, batch_size: int, steps: int) -> float:
    """Run this benchmark's program; return the images/s that it measured."""
    with tempfile.TemporaryDirectory(prefix="bench-cnn-training-") as folder:
        content = {
            "run_id": "bench",
            "benchmark": "cnn_training",
            "version": 1,
            "params": parameters(model, batch_size, steps),
            "repeat": 0,
            "data": None,
            "out": folder,
            "node_local": folder,
        }
        path = Path(folder) / "run.json"
        path.write_text(json.dumps(content))
        words = [sys.executable, str(BENCHMARKS), "cnn_training", "--run", str(path)]
        subprocess.run(words, check=True, capture_output=True)
        native = json.loads((Path(folder) / "native.json").read_text())
    return native["metrics"]["total_images_per_second"]["value"]


def run_tf_cnn_benchmarks(path: Path, model: str, batch_size: int, steps: int) -> float:
    """Run tf_cnn_benchmarks, with SGD and the decay it has anyway; return the total it prints."""
    program = path / "tf_cnn_benchmarks.py" if path.is_dir() else path
    flags = {"device": "cpu", "data_format": "NHWC", "data_name": "cifar10", "model": model}
    flags |= {"batch_size": batch_size, "num_batches": steps, "num_warmup_batches": 10}
    flags |= {"variable_update": "parameter_server", "local_parameter_device": "cpu"}
    words = [sys.executable, str(program), *(f"--{name}={value}" for name, value in flags.items())]
    env = os.environ | {"TF_USE_LEGACY_KERAS": "1"}
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=env)
    rates = re.findall(r"total images/sec: ([0-9.]+)", done.stdout + done.stderr)
    if not rates:
        raise SystemExit(f"{program} printed no total images/sec")
    return float(rates[-1])


def compare_in_process(model: str, batch_size: int, steps: int, rounds: int) -> dict[str, Any]:
    """Return the report on one case: the program's loop, the bare one, and TensorFlow 1's."""
    own, bare = own_loops(model, batch_size)
    loops = {"own": own, "bare": bare, "session": session_loop(model, batch_size)}
    seconds = compare(loops, steps, rounds)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    return {
        "model": model,
        "batch_size": batch_size,
        "images_per_second": {name: batch_size / each for name, each in medians.items()},
        "best_images_per_second": {name: batch_size / min(seconds[name]) for name in seconds},
        "measuring_cost": ratio(seconds["own"], seconds["bare"]) - 1,
        "measuring_cost_at_least": at_least(seconds["own"], seconds["bare"]) - 1,
        "code_cost": code_cost() / medians["own"],
        "stamp_cost": STAMPS * stamp_cost() / medians["own"],
        "session_over_own": ratio(seconds["session"], seconds["own"]),
    }


def compare_programs(path: Path, case: dict[str, Any], steps: int, rounds: int) -> None:
    """Add to a report how the whole program compares with tf_cnn_benchmarks at `path`."""
    what = (case["model"], case["batch_size"])
    programs: dict[str, Callable[[], float]] = {
        "program": lambda: run_benchmark(*what, steps),
        "tf_cnn_benchmarks": lambda: run_tf_cnn_benchmarks(path, *what, steps),
    }
    speeds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name in random.sample(list(programs), len(programs)):
            speeds[name].append(programs[name]())
    for name, each in speeds.items():
        case["images_per_second"][name] = statistics.median(each)
        case["best_images_per_second"][name] = max(each)
    # Of speeds, so the other way round than of seconds.
    case["tf_cnn_benchmarks_over_own"] = ratio(speeds["program"], speeds["tf_cnn_benchmarks"])


def print_report(report: dict[str, Any]) -> None:
    """Print the table of loops and one line for each ratio."""
    print(f"{'case':<20}{'loop':<20}{'images/s':>10}{'best':>10}")
    for case in report["cases"]:
        name = f"{case['model']}, batch {case['batch_size']}"
        for loop, speed in case["images_per_second"].items():
            best = case["best_images_per_second"][loop]
            print(f"{name:<20}{loop:<20}{speed:>10.1f}{best:>10.1f}")
    for case in report["cases"]:
        print(f"{case['model']}, batch {case['batch_size']}:")
        print(
            f"  measuring costs {case['measuring_cost']:.2%} of the bare loop"
            f" (target: {COST_BOUND:g} %; clearly more than {case['measuring_cost_at_least']:.2%};"
            f" stamps alone {case['stamp_cost']:.4%}, the loop's code {case['code_cost']:.4%})"
        )
        print(f"  time of a TensorFlow 1 session / ours: {case['session_over_own']:.3f}")
        if "tf_cnn_benchmarks_over_own" in case:
            print(f"  time of tf_cnn_benchmarks / ours: {case['tf_cnn_benchmarks_over_own']:.3f}")


def rows_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures of a case."""
    name = f"{case['model']}, batch {case['batch_size']}"
    rows = [
        # The cost as a difference of loops is mostly their noise: the bound is for what is clear.
        figure(f"{name}: ours / the bare loop", 1 + case["measuring_cost"], "x"),
        figure(
            f"{name}: the same, lower 95 % bound",
            1 + case["measuring_cost_at_least"],
            "x",
            1 + COST_BOUND / 100,
        ),
        figure(f"{name}: time stamps, of a step", 100 * case["stamp_cost"], "%", COST_BOUND),
        figure(f"{name}: code that measures, of a step", 100 * case["code_cost"], "%", COST_BOUND),
        figure(f"{name}: TensorFlow 1 session / ours", case["session_over_own"], "x"),
    ]
    if "tf_cnn_benchmarks_over_own" in case:
        other = case["tf_cnn_benchmarks_over_own"]
        rows.append(figure(f"{name}: tf_cnn_benchmarks / ours", other, "x"))
    return rows


def main() -> int:
    """Measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the result to this file")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument(
        "--steps", type=int, default=3, help="in each turn; few, as machines change their speed"
    )
    parser.add_argument("--tf-cnn-benchmarks", type=Path, help="the program, or its folder")
    parser.add_argument("--program-rounds", type=int, default=5, help="of whole programs")
    parser.add_argument("--program-steps", type=int, default=100, help="timed in each of them")
    args = parser.parse_args()

    ranks.use("tensorflow")
    ranks.start(1)
    cases = [compare_in_process(*case, args.steps, args.rounds) for case in CASES]
    if args.tf_cnn_benchmarks:
        for case in cases:
            compare_programs(args.tf_cnn_benchmarks, case, args.program_steps, args.program_rounds)
    report = {"rounds": args.rounds, "steps": args.steps, "cases": cases}
    print_report(report)
    report["figures"] = [row for case in cases for row in rows_of(case)]
    write_json(report, args.json)
    ranks.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
