"""The models whose layers are timed: those of cnn_training, and an LSTM.

`make` gives one with its input and loss, `layers_of` the layers of a Keras model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from step_layers.costs import LSTM

# The medium network of W. Zaremba, I. Sutskever, O. Vinyals, Recurrent neural network
# regularization, arXiv:1409.2329, 2014, from the vectors of words on: two layers, dropout after
# each, and a softmax over the words of the Penn Treebank at every step.
UNITS, WORDS, WORD_DROPOUT = 650, 10_000, 0.5


@dataclass(frozen=True)
class Network:
    """A model, shapes and types of a sample and its labels, and the loss of a batch.

    ``loss(labels, outputs)`` is a scalar; ``labels`` are below ``classes``.
    """

    model: tf.keras.Model
    sample: tuple[int, ...]
    classes: int
    labels: tuple[int, ...]
    loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def make(params: dict[str, Any]) -> Network:
    """The network of a point, with Keras's precision policy set already and seeded weights."""
    if params["model"] == LSTM:
        steps = params["sequence_steps"]
        network = _words(steps, params["seed"])
        return Network(network, (steps, UNITS), WORDS, (steps,), _cross_entropy)
    from cnn_training import models

    names = (params[name] for name in ("model", "data_set", "data_format"))
    network = models.build(*names, seed=params["seed"])
    sample = tuple(int(n) for n in network.input_shape[1:])
    return Network(network, sample, models.CLASSES[params["data_set"]], (), _cross_entropy)


def _words(steps: int, seed: int) -> tf.keras.Model:
    """The recurrent network: vectors of words ``[batch, steps, UNITS]`` to logits of the next."""
    layers = tf.keras.layers
    inputs = layers.Input((steps, UNITS))
    x = inputs
    for _ in range(2):
        x = layers.LSTM(UNITS, return_sequences=True)(x)
        x = layers.Dropout(WORD_DROPOUT, seed=seed)(x)
    return tf.keras.Model(inputs, layers.Dense(WORDS)(x))


def _cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
    return tf.reduce_mean(losses)


def layers_of(model: tf.keras.Model) -> Sequence[Any]:
    """The layers of a model that compute, in the order of the model."""
    return [layer for layer in model.layers if not isinstance(layer, tf.keras.layers.InputLayer)]
