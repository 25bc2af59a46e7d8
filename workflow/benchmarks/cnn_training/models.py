"""The networks: `build` makes one, for a data set's shapes and in a memory layout.

vgg16, inception3 and resnet50 are those of tf.keras.applications. The others have the layers that
tf_cnn_benchmarks gives them, down to its peculiarities: CIFAR-10's residual networks have no ReLU
after the first convolution and no convolution in a shortcut; the densenets have a bias in every
convolution, and a ReLU and no more than 24 channels after each of the two transitions, which makes
them much smaller than those of the paper.

tf_cnn_benchmarks counts a class more (the background) and its step counter: 1,756,620 weights for
alexnet where here are 1,756,426.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from harness import seeded

layers = tf.keras.layers

# Height and width of images of ImageNet; of CIFAR-10 they are what its images have.
SIZES = {
    "trivial": 227,
    "lenet": 28,
    "alexnet": 227,
    "vgg16": 224,
    "inception3": 299,
    "resnet50": 224,
}
CLASSES = {"imagenet": 1000, "cifar10": 10}
DROPOUT = 0.5
TRANSITION_CHANNELS = 2  # of a densenet, times its growth


def image_shape(model: str, data_set: str) -> tuple[int, int, int]:
    """Return (height, width, channels) of `model`'s images."""
    size = 32 if data_set == "cifar10" else SIZES[model]
    return size, size, 3


def data_format() -> str:
    """Return Keras's memory layout of images, NHWC or NCHW."""
    return "NHWC" if tf.keras.backend.image_data_format() == "channels_last" else "NCHW"


class ThinOut(layers.Layer):
    """Every second row and column, with channels of zeros on both sides: a shortcut's new shape.

    An average over windows of one pixel, which is the quickest of the ways to say so.
    """

    def __init__(self, padding: int) -> None:
        """Add `padding` channels before and as many behind."""
        super().__init__()
        self.data_format = data_format()
        self.paddings = [[padding, padding] if axis == "C" else [0, 0] for axis in self.data_format]

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Thin out images."""
        thin = tf.nn.avg_pool2d(inputs, 1, 2, "VALID", data_format=self.data_format)
        return tf.pad(thin, self.paddings)


class LocalResponseNormalization(layers.Layer):
    """Divide by ``(1 + alpha * sum of squares over the channels within RADIUS) ** 0.75``.

    The sum is a product with a band matrix, written as a convolution. That gives the numbers of
    tf.nn.local_response_normalization in a quarter of its time on a CPU, and in both layouts.
    """

    RADIUS = 4
    ALPHA = 0.001 / 9

    def __init__(self) -> None:
        """Normalise images of Keras's memory layout."""
        super().__init__()
        self.data_format = data_format()

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Normalise, in float32: alpha is too small for bfloat16."""
        x = tf.cast(inputs, tf.float32)
        channels = np.arange(x.shape[self.data_format.index("C")])
        near = abs(channels[:, None] - channels) <= self.RADIUS
        band = (self.ALPHA * near).astype(np.float32)[None, None]
        scale = 1.0 + tf.nn.conv2d(x * x, band, 1, "VALID", data_format=self.data_format)
        x *= tf.math.rsqrt(scale) * tf.math.rsqrt(tf.sqrt(scale))
        return tf.cast(x, inputs.dtype)


Body = Callable[[Any, int | None], Any]  # images and the seed of dropout -> what is before logits


def conv(x: Any, filters: int, size: int, stride: int = 1, **more: Any) -> Any:
    """Convolve; `more` is Keras's, but that padding is ``same`` by default."""
    return layers.Conv2D(filters, size, stride, **{"padding": "same"} | more)(x)


def norm(x: Any) -> Any:
    """Normalise by the batch, as all of CIFAR-10's networks do."""
    axis = data_format().index("C")
    return layers.BatchNormalization(axis=axis, momentum=0.9, epsilon=1e-5)(x)


def max_pool(x: Any, size: int, padding: str = "valid") -> Any:
    """Take the maximum of windows that are two pixels apart."""
    return layers.MaxPool2D(size, 2, padding)(x)


def dense(x: Any, units: int) -> Any:
    """Append a fully connected layer with ReLU."""
    return layers.Dense(units, activation="relu")(x)


def trivial(x: Any, _: int | None) -> Any:
    """Hardly any work: one unit that sees the whole image, and a layer of 4096."""
    return dense(dense(layers.Flatten()(x), 1), 4096)


def lenet(x: Any, _: int | None) -> Any:
    """LeNet-5 with wider layers and ReLU."""
    for filters in (32, 64):
        x = max_pool(conv(x, filters, 5, activation="relu"), 2)
    return dense(layers.Flatten()(x), 512)


def alexnet(x: Any, seed: int | None) -> Any:
    """AlexNet in one tower, without normalisation over channels."""
    x = conv(x, 64, 11, 4, padding="valid", activation="relu")
    x = conv(max_pool(x, 3), 192, 5, activation="relu")
    x = max_pool(x, 3)
    for filters in (384, 384, 256):
        x = conv(x, filters, 3, activation="relu")
    x = layers.Flatten()(max_pool(x, 3))
    for _ in range(2):
        x = layers.Dropout(DROPOUT, seed=seed)(dense(x, 4096))
    return x


def alexnet_cifar10(x: Any, _: int | None) -> Any:
    """A small network that tf_cnn_benchmarks calls AlexNet, normalised over channels."""
    x = conv(x, 64, 5, activation="relu")
    x = LocalResponseNormalization()(max_pool(x, 3, "same"))
    x = LocalResponseNormalization()(conv(x, 64, 5, activation="relu"))
    x = layers.Flatten()(max_pool(x, 3, "same"))
    return dense(dense(x, 384), 192)


def resnet_cifar10(x: Any, _: int | None, blocks: int) -> Any:
    """The residual network of ``6 * blocks + 2`` layers."""
    x = norm(conv(x, 16, 3, use_bias=False))
    for filters in (16, 32, 64):
        for block in range(blocks):
            past, stride = x, 1
            if filters > 16 and block == 0:
                past, stride = ThinOut(filters // 4)(x), 2
            x = layers.ReLU()(norm(conv(x, filters, 3, stride, use_bias=False)))
            x = norm(conv(x, filters, 3, use_bias=False))
            x = layers.ReLU()(layers.Add()([past, x]))
    return layers.GlobalAveragePooling2D()(x)


def densenet_cifar10(x: Any, _: int | None, convolutions: int, growth: int = 12) -> Any:
    """The densenet of three blocks of so many convolutions, of `growth` channels each."""
    x = conv(x, 16, 3)
    for block in range(3):
        if block:
            x = conv(x, TRANSITION_CHANNELS * growth, 1, activation="relu")
            x = layers.AveragePooling2D(2, 2)(x)
        for _ in range(convolutions):
            new = conv(layers.ReLU()(norm(x)), growth, 3)
            x = layers.Concatenate(axis=data_format().index("C"))([x, new])
        x = layers.ReLU()(norm(x))
    return layers.GlobalAveragePooling2D()(x)


BODIES: dict[tuple[str, str], Body] = {
    ("trivial", "imagenet"): trivial,
    ("lenet", "imagenet"): lenet,
    ("alexnet", "imagenet"): alexnet,
    ("alexnet", "cifar10"): alexnet_cifar10,
    **{
        (f"resnet{depth}", "cifar10"): partial(resnet_cifar10, blocks=(depth - 2) // 6)
        for depth in (20, 32, 44, 56, 110)
    },
    ("densenet40_k12", "cifar10"): partial(densenet_cifar10, convolutions=12),
    ("densenet100_k12", "cifar10"): partial(densenet_cifar10, convolutions=32),
}
APPLICATIONS = {
    "vgg16": tf.keras.applications.VGG16,
    "inception3": tf.keras.applications.InceptionV3,
    "resnet50": tf.keras.applications.ResNet50,
}


def build(model: str, data_set: str, layout: str, seed: int | None = None) -> tf.keras.Model:
    """Return the network from images of a layout (NHWC or NCHW) to logits float32 ``[N, classes]``.

    The layout stays Keras's own. Layers but the last follow its global precision policy. With
    `seed` the weights are those of `initial_weights`, else Keras's random ones. Weights are in the
    same order, of the same shapes and mean the same in both layouts.
    """
    kind = "channels_last" if layout == "NHWC" else "channels_first"
    tf.keras.backend.set_image_data_format(kind)
    height, width, channels = image_shape(model, data_set)
    shape = (height, width, channels) if layout == "NHWC" else (channels, height, width)
    classes = CLASSES[data_set]
    if model in APPLICATIONS:
        network = APPLICATIONS[model](
            weights=None, input_shape=shape, classes=classes, classifier_activation=None
        )
        inputs, logits = network.input, network.output
    else:
        inputs = layers.Input(shape)
        logits = layers.Dense(classes)(BODIES[model, data_set](inputs, seed))
    if logits.dtype != tf.float32:
        logits = layers.Activation("linear", dtype="float32")(logits)
    network = tf.keras.Model(inputs, logits, name=model)
    if seed is not None:
        network.set_weights(initial_weights(network, seed))
    return network


def initial_weights(model: tf.keras.Model, seed: int) -> list[np.ndarray]:
    """Return weights to begin with, in the order of ``model.weights``.

    Kernels are normal with a variance of one over the number of inputs, scales and moving variances
    one, the rest zero. (He's variance, twice that, sends alexnet and vgg16 to infinity within a few
    steps at a learning rate of 0.01.) Each kernel depends on `seed` and its number in that order
    alone: not on layout, devices or processes.
    """
    weights = []
    for number, variable in enumerate(model.weights):
        kind, shape = variable.name.rpartition("/")[2].partition(":")[0], tuple(variable.shape)
        if kind == "kernel":
            variance = float(1 / np.prod(shape[:-1]))
            weights.append(seeded.kernel(shape, seed, number, variance))
        else:
            ones = kind in ("gamma", "moving_variance")
            weights.append(np.full(shape, float(ones), np.float32))
    return weights
