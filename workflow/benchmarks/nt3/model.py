"""NT3's network: two 1-D convolutions with poolings, dense layers with dropout, two classes."""

from typing import Any

import tensorflow as tf

CLASSES = 2


def build(params: dict[str, Any]) -> tf.keras.Model:
    """Return the network, from float32 ``[batch, features, 1]`` to logits ``[batch, 2]``.

    The original ends with a softmax; here that is part of the loss, as Keras computes it too. A
    pooling of width 1 changes nothing and is left out.
    """
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((params["features"], 1))])
    stages = zip(params["filters"], params["kernels"], params["pools"], strict=True)
    for filters, kernel, pool in stages:
        model.add(layers.Conv1D(filters, kernel, activation="relu"))
        if pool > 1:
            model.add(layers.MaxPooling1D(pool))
    model.add(layers.Flatten())
    for units in params["dense_units"]:
        model.add(layers.Dense(units, activation="relu"))
        if params["dropout"]:
            model.add(layers.Dropout(params["dropout"]))
    model.add(layers.Dense(CLASSES))
    return model


def measure(labels: tf.Tensor, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return cross-entropy and whether the larger logit is the label's, of each sample."""
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    right = tf.equal(tf.argmax(logits, -1, tf.int32), labels)
    return loss, tf.cast(right, tf.float32)
