"""What every way to train gives the program: steps that it can take, and what they are."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from harness import tf_spans, watch

Batch = tuple[tf.Tensor, tf.Tensor]  # images, labels
Step = tuple[tf.Tensor, tf.Tensor]  # loss, and where the step's seconds went (tf_spans.in_graph)
Graph = Callable[[], Callable[..., Step]]
# From a batch of each device: its losses; and stamps of the last local gradient, before and after
# the update, and of the end.
Learn = Callable[
    [Sequence[Batch]],
    tuple[Sequence[tf.Tensor], tf.Tensor, tuple[tf.Tensor, tf.Tensor], tf.Tensor],
]
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
    return Trainer(lambda steps: take(steps, graph()), model, copies, strategy, graph=graph)


def traced(step: Callable[..., Step], *signature: tf.TensorSpec) -> Graph:
    """Return a function that makes the graph of a step when first called, and returns it."""
    return functools.cache(lambda: tf.function(step).get_concrete_function(*signature))


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
