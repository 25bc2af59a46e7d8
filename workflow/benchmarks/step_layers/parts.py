"""A step in parts that are timed apart: its layers, the loss, the update, and all of it.

Layers of the same class, settings, shapes and types are timed once, and count as often as they are
there. A layer is given inputs of its own; what is timed is its forward pass, and its forward and
backward pass with a gradient by the output that is there already.

Each is timed again and again inside one graph, so that starting a graph costs nothing. Each turn of
the loop takes the sum of some values of the last one, which keeps TensorFlow from leaving out what
no one reads, from hoisting out of the loop what never changes, and from running two turns at once.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from step_layers import costs

LEARNING_RATE = 1e-4
SPREAD = 0.1  # of the samples' values
MOST_TURNS = 10_000

# A body takes the tensors of ``inputs`` and returns all that it computes.
Body = Callable[..., Sequence[tf.Tensor]]


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

    def seconds(self) -> float:
        """Seconds of one turn, the mean over the turns of one timing."""
        return self.run(self.turns) / self.turns


def _touch(tensors: Sequence[Any]) -> tf.Tensor:
    """The sum of a value of each tensor: next to no work, and it needs all of each."""
    firsts = [tf.cast(tf.reshape(tensor, [-1])[0], tf.float32) for tensor in tensors]
    return tf.add_n(firsts) if firsts else tf.constant(0.0)


@dataclass
class Part:
    """A kind of layer: where it is in the model, what it costs, and its loops.

    ``both`` is forward and backward; None where there is no backward, which is then 0.
    """

    name: str
    kind: str
    cost: costs.Cost
    forward: Timed
    both: Timed | None
    count: int = 0  # of such layers


def layer_parts(model: tf.keras.Model, batch: int, size: int) -> list[Part]:
    """The layers of a model that do something, the first of each kind, with how many there are.

    ``size``: bytes of a value of an activation.
    """
    parts: dict[str, Part] = {}
    ready = {id(tensor) for tensor in model.inputs}
    for layer in layers_of(model):
        by_input = any(id(tensor) not in ready for tensor in tf.nest.flatten(layer.input))
        if not by_input and not layer.trainable_variables:
            # What comes before the first weights needs no gradient either.
            ready |= {id(tensor) for tensor in tf.nest.flatten(layer.output)}
        if costs.kind_of(layer) == costs.RESHAPE:
            continue
        key = _alike(layer, by_input)
        if key not in parts:
            cost = costs.cost(layer, batch, size, by_input)
            inputs = [_values(batch, tensor) for tensor in tf.nest.flatten(layer.input)]
            given, weights = _values(batch, layer.output), layer.trainable_variables
            loops = _loops(partial(_call, layer), inputs, given, weights, by_input)
            parts[key] = Part(layer.name, costs.kind_of(layer), cost, *loops)
        parts[key].count += 1
    return list(parts.values())


def layers_of(model: tf.keras.Model) -> list[Any]:
    """The layers of a model that compute, in the order of the model."""
    return [layer for layer in model.layers if not isinstance(layer, tf.keras.layers.InputLayer)]


def _alike(layer: Any, by_input: bool) -> str:
    """What layers have in common that take the same time."""
    config = {
        name: value
        for name, value in layer.get_config().items()
        if name != "name" and not isinstance(value, dict)  # of initialisers, with their seeds
    }
    tensors = tf.nest.flatten([layer.input, layer.output])
    shapes = [(tensor.shape.as_list(), tensor.dtype.name) for tensor in tensors]
    return json.dumps([type(layer).__name__, config, shapes, by_input], default=str)


def _call(layer: Any, *tensors: tf.Tensor) -> tf.Tensor:
    return layer(tensors[0] if len(tensors) == 1 else list(tensors), training=True)


def _loops(
    call: Callable[..., tf.Tensor],
    inputs: Sequence[tf.Tensor],
    given: tf.Tensor,
    weights: Sequence[tf.Variable] = (),
    by_input: bool = True,
) -> tuple[Timed, Timed | None]:
    """Forward, and both ways with a gradient by the output that is `given`."""

    def forward(*tensors: tf.Tensor) -> list[tf.Tensor]:
        return [call(*tensors)]

    def both(given: tf.Tensor, *tensors: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            if by_input:
                tape.watch(tensors)
            output = call(*tensors)
        gradients = tape.gradient(output, [*(tensors if by_input else ()), *weights], given)
        return [output, *(each for each in gradients if each is not None)]

    backward = Timed(both, [given, *inputs]) if by_input or weights else None
    return Timed(forward, inputs), backward


def _values(batch: int, like: Any) -> tf.Tensor:
    """Random values of the type of a Keras tensor, and of its shape with the batch."""
    rng = np.random.default_rng(len(like.shape))
    return tf.cast(rng.standard_normal((batch, *like.shape[1:]), np.float32) * SPREAD, like.dtype)


def batch_of(model: tf.keras.Model, batch: int, seed: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Samples and labels of a batch."""
    rng = np.random.default_rng(seed)
    shape, (*steps, classes) = model.input_shape[1:], model.output_shape[1:]
    samples = rng.standard_normal((batch, *shape), np.float32) * np.float32(SPREAD)
    labels = rng.integers(classes, size=(batch, *steps), dtype=np.int32)
    return tf.constant(samples), tf.constant(labels)


def loss_of(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Cross-entropy, the mean over a batch and its steps."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
    return tf.reduce_mean(losses)


def loss_part(model: tf.keras.Model, labels: tf.Tensor, batch: int) -> Part:
    """The loss of a batch, and its gradient by the model's output."""
    logits = _values(batch, model.output)
    loops = _loops(partial(loss_of, labels), [logits], tf.constant(1.0))
    cost = costs.loss_cost(int(np.prod(model.output_shape[1:])), batch)
    return Part(costs.LOSS, costs.LOSS, cost, *loops, count=1)


def update_part(model: tf.keras.Model) -> Part:
    """Stochastic gradient descent of all weights, by gradients that are there."""
    variables = model.trainable_variables
    optimizer = tf.keras.optimizers.legacy.SGD(LEARNING_RATE)

    def update(*gradients: tf.Tensor) -> list[tf.Tensor]:
        done = optimizer.apply_gradients(zip(gradients, variables, strict=True))
        with tf.control_dependencies([done]):
            return [tf.constant(0.0) + 1.0]

    timed = Timed(update, [tf.zeros(variable.shape) for variable in variables])
    cost = costs.update_cost(costs.weights_of(variables))
    return Part(costs.UPDATE, costs.UPDATE, cost, timed, None, count=1)


def whole_step(model: tf.keras.Model, samples: tf.Tensor, labels: tf.Tensor) -> Timed:
    """Forward, loss, backward and update in one graph: the step, but for exchanging gradients."""
    optimizer = tf.keras.optimizers.legacy.SGD(LEARNING_RATE)

    def step(samples: tf.Tensor, labels: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(samples, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        done = optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        with tf.control_dependencies([done]):
            return [tf.identity(loss)]

    return Timed(step, [samples, labels])


def nothing() -> Timed:
    """A turn that does next to nothing: what starting operations takes."""
    return Timed(lambda x: [x + 1.0], [tf.constant(0.0)])
