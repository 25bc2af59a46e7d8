"""The models whose layers are timed: those of cnn_training, cosmoflow_training and nt3, and an
LSTM.

`make` gives one with its input and loss, `layers_of` the layers of a Keras model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from step_layers.costs import LSTM

COSMOFLOW, NT3 = "cosmoflow", "nt3"
CHANNELS = 4  # of CosmoFlow's volumes
# Sizes of NT3's network, those of its benchmark's defaults.
NT3_LAYERS = {
    "filters": [128, 128],
    "kernels": [20, 10],
    "pools": [1, 10],
    "dense_units": [200, 20],
    "dropout": 0.1,
}

# The medium network of W. Zaremba, I. Sutskever, O. Vinyals, Recurrent neural network
# regularization, arXiv:1409.2329, 2014, from the vectors of words on: two layers, dropout after
# each, and a softmax over the words of the Penn Treebank at every step.
UNITS, WORDS, WORD_DROPOUT = 650, 10_000, 0.5


@dataclass(frozen=True)
class Network:
    """A model, shapes and types of a sample and its labels, and the loss of a batch.

    ``loss(labels, outputs)`` is a scalar; ``labels`` are below ``classes``, or numbers where that
    is 0.
    """

    model: tf.keras.Model
    sample: tuple[int, ...]
    classes: int
    labels: tuple[int, ...]
    loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def make(params: dict[str, Any]) -> Network:
    """The network of a point, with Keras's precision policy set already and seeded weights."""
    if params["model"] == COSMOFLOW:
        from cosmoflow_training import model as cosmoflow

        shape = (*[params["sample_size"]] * 3, CHANNELS)
        measure = cosmoflow.make_measure("mse")
        # Five, or as many as its poolings leave something of.
        layers = min(5, params["sample_size"].bit_length() - 1)
        network = cosmoflow.build(shape, conv_layers=layers)
        return Network(
            network, shape, 0, (cosmoflow.TARGETS,), lambda y, p: tf.reduce_mean(measure(y, p)[0])
        )
    if params["model"] == NT3:
        from nt3 import model as nt3

        network = nt3.build({**NT3_LAYERS, "features": params["features"]})
        return Network(network, (params["features"], 1), nt3.CLASSES, (), _cross_entropy)
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
