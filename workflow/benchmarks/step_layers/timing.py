"""Times of a layer, again and again inside one graph, so that starting a graph costs nothing.

Each turn of the loop takes the sum of some values of the last one, which keeps TensorFlow from
leaving out what no one reads, from hoisting out of the loop what never changes, and from running
two turns at once.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

# A body takes the tensors of ``inputs`` and returns all that it computes.
Body = Callable[..., Sequence[tf.Tensor]]
MOST_TURNS = 10_000


class Timed:
    """A body that is repeated in a loop of one graph.

    ``inputs`` are tensors on the device; the first is what a turn waits with for the one before.
    """

    def __init__(self, body: Body, inputs: Sequence[tf.Tensor]) -> None:
        """Trace nothing yet."""
        self.inputs = list(inputs)
        self.turns = 1

        def loop(turns: tf.Tensor, *tensors: tf.Tensor) -> tf.Tensor:
            def turn(number: tf.Tensor, held: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                with tf.control_dependencies([held]):
                    after = [tf.identity(tensor) for tensor in tensors]
                return number + 1, held + _touch(body(*after))

            return tf.while_loop(
                lambda number, _: number < turns,
                turn,
                (tf.constant(0), tf.constant(0.0)),
                parallel_iterations=1,
            )[1]

        self._loop = tf.function(loop)

    def run(self, turns: int) -> float:
        """Seconds of so many turns."""
        began = time.perf_counter()
        self._loop(tf.constant(turns), *self.inputs).numpy()
        return time.perf_counter() - began

    def calibrate(self, least_s: float) -> None:
        """Trace, warm up, and choose the number of turns that takes at least ``least_s``."""
        self.run(1)
        once = max(self.run(1), 1e-9)
        if once < least_s:  # most of it is the graph's start
            few = max(1, min(100, int(least_s / once)))
            once = max(self.run(few) / few, 1e-9)
        self.turns = max(1, min(MOST_TURNS, round(least_s / once)))

    def seconds(self) -> tuple[float, float]:
        """Seconds of one turn, and those of all cores, as means over the turns of one timing."""
        began = time.process_time()
        seconds = self.run(self.turns)
        return seconds / self.turns, (time.process_time() - began) / self.turns


def _touch(tensors: Sequence[Any]) -> tf.Tensor:
    """The sum of a value of each tensor: next to no work, and it needs all of each."""
    firsts = [tf.cast(tf.reshape(tensor, [-1])[0], tf.float32) for tensor in tensors]
    return tf.add_n(firsts) if firsts else tf.constant(0.0)
