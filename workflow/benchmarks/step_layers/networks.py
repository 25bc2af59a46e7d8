"""The models whose layers are timed: those of cnn_training, and an LSTM."""

from typing import Any

import tensorflow as tf

# The medium network of W. Zaremba, I. Sutskever, O. Vinyals, Recurrent neural network
# regularization, arXiv:1409.2329, 2014, from the vectors of words on: two layers, dropout after
# each, and a softmax over the words of the Penn Treebank at every step.
UNITS, WORDS, WORD_DROPOUT = 650, 10_000, 0.5


def make(params: dict[str, Any]) -> tf.keras.Model:
    """The network of a point, with Keras's precision policy set already and seeded weights."""
    if params["model"] == "lstm":
        return _words(params["sequence_steps"], params["seed"])
    from cnn_training import models

    names = (params[name] for name in ("model", "data_set", "data_format"))
    return models.build(*names, seed=params["seed"])


def _words(steps: int, seed: int) -> tf.keras.Model:
    """The recurrent network: vectors of words ``[batch, steps, UNITS]`` to logits of the next."""
    layers = tf.keras.layers
    inputs = layers.Input((steps, UNITS))
    x = inputs
    for _ in range(2):
        x = layers.LSTM(UNITS, return_sequences=True)(x)
        x = layers.Dropout(WORD_DROPOUT, seed=seed)(x)
    return tf.keras.Model(inputs, layers.Dense(WORDS)(x))
