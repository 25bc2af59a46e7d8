"""What every way to train gives the program: steps that it can take, and what they are."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from harness import watch

OWN = "of each rank"
OBSERVED = "of each rank's devices, as rank 0 sees them, which starts their steps"
Step = tuple[tf.Tensor, tf.Tensor]  # loss, and where the step's seconds went (tf_spans.in_graph)
Graph = Callable[[], Callable[..., Step]]
# Of steps: seconds, losses ``[step]``; spans ``[step, 4]``. Of parameter servers all by rank too.
Taken = tuple[np.ndarray, np.ndarray, np.ndarray]
Run = Callable[[int], Taken]


@dataclass
class Trainer:
    """A way to train, ready on this rank.

    `run` takes a number of steps and returns seconds, losses and where the seconds went, for each
    rank where rank 0 drives the devices of all (`drives_all`; on the others `run` is then None and
    `copies` empty). `copies` holds the trainable variables of every copy that this process can
    read, and `model` one of the models.
    """

    run: Run | None
    model: tf.keras.Model | None = None
    copies: list[list[tf.Variable]] = field(default_factory=list)
    strategy: str = "none"
    all_reduce: str = "none"
    communication: str = "none"
    synchronous: bool = True
    drives_all: bool = False
    step_times: str = OWN  # what they are times of
    graph: Graph | None = None  # of a step, where all that `run` does is to repeat it


def take(
    steps: int, step: Callable[..., Step], read: Callable[[], Sequence[tf.Tensor]] = tuple
) -> Taken:
    """Take steps, each of which ends when its loss is known; ``read()`` gives what it works on.

    What lies between the end of one and the begin of the next is the program's own time.
    """
    times, losses, spent = np.empty(steps), [np.empty(0)] * steps, [np.empty(0)] * steps
    clock = time.perf_counter
    ended = clock()
    for number in range(steps):
        began = clock()
        between = began - ended
        batch = read()
        waited = clock() - began
        loss, seconds = step(*batch)
        losses[number] = loss.numpy()
        ended = clock()
        times[number] = ended - began
        spent[number] = np.append(seconds.numpy(), between)
        spent[number][0] += waited
        watch.advance()
    return times, np.array(losses, np.float64), np.array(spent, np.float64)


def traced(step: Callable[..., Step], *signature: tf.TensorSpec) -> Graph:
    """Return a function that makes the graph of a step when first called, and returns it."""
    return functools.cache(lambda: tf.function(step).get_concrete_function(*signature))


def repeat(graph: Graph) -> Run:
    """Return a function that takes a number of steps of one graph, which its first call makes."""
    return lambda steps: take(steps, graph())
