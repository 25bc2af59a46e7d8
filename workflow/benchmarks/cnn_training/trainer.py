"""What every way to train is made of: a network, its gradients, and steps that it can take."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from cnn_training import models
from harness import tf_spans, watch

# Against gradients too small for float16; the default of tf_cnn_benchmarks.
FLOAT16_LOSS_SCALE = 128.0

Optimizer = tf.keras.optimizers.legacy.Optimizer
Gradients = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, list[tf.Tensor]]]
Batch = tuple[tf.Tensor, tf.Tensor]  # images, labels
Step = tuple[tf.Tensor, tf.Tensor]  # loss, and where the step's seconds went (tf_spans.in_graph)
Graph = Callable[[], Callable[..., Step]]
# From a batch of each device to their losses, and stamps: of the last local gradient, of the begin
# and end of the update (two), of the end.
Learn = Callable[[Sequence[Batch]], tuple[Any, ...]]
# Of steps: seconds, losses ``[step]``; spans ``[step, 4]``. Of parameter servers all by rank too.
Taken = tuple[np.ndarray, ...]


@dataclass
class Trainer:
    """A way to train, ready on this rank.

    `run` takes a number of steps and returns seconds, losses and where the seconds went, for each
    rank where rank 0 drives the devices of all (`drives_all`; on the others `run` does nothing and
    `copies` is empty). `copies` holds the trainable variables of every copy that this process can
    read, and `model` is one of the models.
    """

    run: Callable[[int], Taken]
    model: tf.keras.Model | None = None
    copies: list[list[tf.Variable]] = field(default_factory=list)
    strategy: str = "none"
    synchronous: bool = True
    drives_all: bool = False
    graph: Graph | None = None  # of a step, if all that `run` does is to repeat it


def repeat(
    learn: Learn,
    batches: Callable[[], list[Batch]],
    devices: Sequence[str],
    copies: list[list[tf.Variable]],
    model: tf.keras.Model,
    strategy: str,
) -> Trainer:
    """Return the trainer that repeats one graph, in which this rank's devices learn together."""

    def step() -> Step:
        begun = tf_spans.stamp()
        with tf.control_dependencies([begun]):
            fed, shares = tf_spans.after(batches(), devices)
        losses, ready, update, end = learn(shares)
        return tf.add_n(losses) / len(losses), tf_spans.in_graph(begun, fed, ready, update, end)

    graph = traced(step)

    def run(steps: int) -> Taken:
        return take(steps, graph()) if steps else 3 * (np.empty(0),)

    return Trainer(run, model, copies, strategy, graph=graph)


def traced(step: Callable[..., Step], *signature: tf.TensorSpec) -> Graph:
    """Return a function that makes the graph of a step when first called, and returns it."""
    # AutoGraph has nothing to convert, and takes seconds to look through all of Horovod.
    function = tf.function(step, autograph=False)
    return functools.cache(lambda: function.get_concrete_function(*signature))


def take(
    steps: int, step: Callable[..., Step], read: Callable[[], Sequence[tf.Tensor]] = tuple
) -> Taken:
    """Take steps, each of which ends when its loss is known; ``read()`` gives what it works on.

    What lies between the end of one and the begin of the next is the program's own time.
    """
    times, losses, spent = [], [], []
    clock = time.perf_counter
    ended = clock()
    for _ in range(steps):
        began = clock()
        between = began - ended
        batch = read()
        waited = clock() - began
        loss, seconds = step(*batch)
        losses.append(loss.numpy())
        ended = clock()
        times.append(ended - began)
        spent.append(np.append(seconds.numpy(), between))
        spent[-1][0] += waited
        watch.advance()
    return tuple(np.array(each, np.float64) for each in (times, losses, spent))


def make_model(params: dict[str, Any]) -> tf.keras.Model:
    """Return the network with its seeded weights, the same on every device and rank.

    Variables are made on the current device, or by the current strategy.
    """
    tf.keras.mixed_precision.set_global_policy(params["precision"])
    names = (params[name] for name in ("model", "data_set", "data_format"))
    return models.build(*names, seed=params["seed"])


def make_optimizer(params: dict[str, Any]) -> Optimizer:
    """Return stochastic gradient descent, with momentum if that is asked for.

    The legacy one updates a variable in one fused operation and knows every strategy, of which the
    newer ones refuse CentralStorageStrategy.
    """
    momentum = 0.9 if params["optimizer"] == "momentum" else 0.0
    return tf.keras.optimizers.legacy.SGD(params["learning_rate"], momentum)


def make_gradients(model: tf.keras.Model, params: dict[str, Any], share: float = 1.0) -> Gradients:
    """Return a function from images and int labels ``[batch]`` to loss and gradients.

    The loss is the mean cross-entropy. The gradients are those of the loss and the L2 decay of all
    trainable variables, times `share`: where a sum over devices follows, one over their number
    makes it their mean.
    """
    variables = model.trainable_variables
    decay = params["weight_decay"] * share
    scale = FLOAT16_LOSS_SCALE if params["precision"] == "mixed_float16" else 1.0

    def gradients(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
            target = loss * (scale * share)
        derivatives = tape.gradient(target, variables)
        if scale != 1.0:
            derivatives = [gradient / scale for gradient in derivatives]
        if decay:
            derivatives = [g + decay * v for g, v in zip(derivatives, variables, strict=True)]
        return loss, derivatives

    return tf.function(gradients, jit_compile=True) if params["xla"] else gradients


def stamped_sums(optimizer: Optimizer) -> Callable[[], tf.Tensor]:
    """Have the optimiser take a stamp when gradients are summed over the replicas of its strategy.

    Returns the function that gives the stamp of the update traced last.
    """
    taken: list[tf.Tensor] = []
    add_up = optimizer.gradient_aggregator

    def aggregate(pairs: Any) -> Any:
        sums = list(add_up(pairs))
        taken[:] = [tf_spans.stamp([gradient for gradient, _ in sums])]
        return sums

    optimizer.gradient_aggregator = aggregate
    return lambda: taken[0]
