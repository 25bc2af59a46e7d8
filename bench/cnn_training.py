"""Is the CNN training step fast, and what does measuring it cost?

(a) The step loop of the benchmark against the bare loop: the same step without time stamps in its
graph, called without clocks and without looking at the loss. (b) The benchmark against the same
network written for a TensorFlow 1 session in the plainest way, which fetches the update and the
loss in each step. All with one process on a CPU, float32, NHWC, SGD with L2 decay of all variables.
Each comparison takes turns, in a new order each round; a ratio is the median over rounds of theirs
/ ours in seconds a step, above 1 where ours is faster.

    python -m bench.cnn_training [--rounds N] [--steps N]
"""

import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from bench.lib.pairs import figure, median_interval, ratio, run, take_turns

BENCHMARKS = Path(__file__).resolve().parents[1] / "workflow" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # before this folder, whose cnn_training.py this is

from harness import import_without  # before TensorFlow: it silences its start

import_without("pandas", "scipy", "PIL")

import tensorflow as tf
import yaml

from cnn_training import cluster, updates
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
    place = cluster.Place(0, 1, "CPU", ["/device:CPU:0"], (0, 0))
    trainer = updates.make(params, place, None)
    with mock.patch.object(tf_spans, "method", lambda: spans.NONE):
        step = updates.make(params, place, None).graph()

    def bare(steps: int) -> None:
        for _ in range(steps):
            step()

    return trainer.run, bare


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


def compare(loops: dict[str, Loop], steps: int, rounds: int) -> dict[str, list[float]]:
    """Let the loops take turns; seconds a step by loop."""
    return take_turns({name: partial(loop, steps) for name, loop in loops.items()}, rounds, steps)


def measure(rounds: int = 60, steps: int = 3) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds of so many steps; few, as machines change their speed."""
    ranks.use("tensorflow")
    ranks.start(1)
    for model, batch_size in CASES:
        own, bare = own_loops(model, batch_size)
        loops = {"own": own, "bare": bare, "session": session_loop(model, batch_size)}
        seconds = compare(loops, steps, rounds)
        each = statistics.median(seconds["own"])
        name = f"{model}, batch {batch_size}"
        yield figure(f"{name}: ours", batch_size / each, "1/s")
        # The cost as a difference of loops is mostly their noise: the bound is for what is clear.
        yield figure(f"{name}: ours / the bare loop", ratio(seconds["own"], seconds["bare"]), "x")
        ratios = [a / b for a, b in zip(seconds["own"], seconds["bare"], strict=True)]
        low, _ = median_interval(ratios)
        yield figure(f"{name}: the same, lower 95 % bound", low, "x", 1 + COST_BOUND / 100)
        stamps = 100 * STAMPS * stamp_cost() / each
        yield figure(f"{name}: time stamps, of a step", stamps, "%", COST_BOUND)
        session = ratio(seconds["session"], seconds["own"])
        yield figure(f"{name}: TensorFlow 1 session / ours", session, "x")
    ranks.stop()


if __name__ == "__main__":
    run(measure)
