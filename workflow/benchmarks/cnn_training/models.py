"""The networks: `build` makes one, for a data set's shapes and in a memory layout.

vgg16, inception3 and resnet50 are those of tf.keras.applications. The others have the layers that
tf_cnn_benchmarks gives them, down to its peculiarities: CIFAR-10's residual networks have no ReLU
after the first convolution and no convolution in a shortcut; the densenets have a bias in every
convolution, and a ReLU and no more than 24 channels after each of the two transitions, which makes
them much smaller than those of the paper.

Values of all weights, those that are trained, and the moving statistics of batch normalisation:

================  ========  ===========  ===========  ==========
model             classes   all          trained      statistics
================  ========  ===========  ===========  ==========
trivial               1000    4,259,780    4,259,780           0
lenet                 1000    2,172,840    2,172,840           0
alexnet               1000   61,838,248   61,838,248           0
vgg16                 1000  138,357,544  138,357,544           0
inception3            1000   23,851,784   23,817,352      34,432
resnet50              1000   25,636,712   25,583,592      53,120
alexnet                 10    1,756,426    1,756,426           0
resnet20                10      271,098      269,722       1,376
resnet32                10      466,426      464,154       2,272
resnet44                10      661,754      658,586       3,168
resnet56                10      857,082      853,018       4,064
resnet110               10    1,736,058    1,727,962       8,096
densenet40_k12          10      364,602      357,322       7,280
densenet100_k12         10    2,259,242    2,217,002      42,240
================  ========  ===========  ===========  ==========

tf_cnn_benchmarks counts a class more (the background) and its step counter: 1,756,620 for alexnet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from harness import seeded

layers = tf.keras.layers

IMAGE_SIZES = {
    "imagenet": {
        "trivial": 227,
        "lenet": 28,
        "alexnet": 227,
        "vgg16": 224,
        "inception3": 299,
        "resnet50": 224,
    },
    "cifar10": dict.fromkeys(
        [
            *("alexnet", "resnet20", "resnet32", "resnet44", "resnet56", "resnet110"),
            *("densenet40_k12", "densenet100_k12"),
        ],
        32,
    ),
}
CLASSES = {"imagenet": 1000, "cifar10": 10}
DROPOUT = 0.5
TRANSITION_CHANNELS = 2  # of a densenet, times its growth


def classes_of(data_set: str) -> int:
    """Return the number of classes of a data set."""
    return CLASSES[data_set]


def image_shape(model: str, data_set: str) -> tuple[int, int, int]:
    """Return (height, width, channels) of `model`'s images; ValueError when they do not go."""
    try:
        size = IMAGE_SIZES[data_set][model]
    except KeyError:
        raise ValueError(f"there is no model {model} for data_set {data_set}") from None
    return size, size, 3


class ThinOut(layers.Layer):
    """Every second row and column, with channels of zeros on both sides: a shortcut's new shape.

    An average over windows of one pixel, which is the quickest of the ways to say so.
    """

    def __init__(self, data_format: str, padding: int) -> None:
        """Add `padding` channels before and as many behind."""
        super().__init__()
        self.data_format = data_format
        self.paddings = [[0, 0] for _ in "NHWC"]
        self.paddings[data_format.index("C")] = [padding, padding]

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Thin out images of `data_format`."""
        thin = tf.nn.avg_pool2d(inputs, 1, 2, "VALID", data_format=self.data_format)
        return tf.pad(thin, self.paddings)


class LocalResponseNormalization(layers.Layer):
    """Divide by ``(1 + alpha * sum of squares over the channels within RADIUS) ** 0.75``.

    The sum is a product with a band matrix, written as a convolution. That gives the numbers of
    tf.nn.local_response_normalization in a quarter of its time on a CPU, and in both layouts.
    """

    RADIUS = 4
    ALPHA = 0.001 / 9

    def __init__(self, data_format: str) -> None:
        """Normalise images of `data_format`."""
        super().__init__()
        self.data_format = data_format

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Normalise, in float32: alpha is too small for bfloat16."""
        x = tf.cast(inputs, tf.float32)
        channels = np.arange(x.shape[self.data_format.index("C")])
        near = abs(channels[:, None] - channels) <= self.RADIUS
        band = (self.ALPHA * near).astype(np.float32)[None, None]
        scale = 1.0 + tf.nn.conv2d(x * x, band, 1, "VALID", data_format=self.data_format)
        x *= tf.math.rsqrt(scale) * tf.math.rsqrt(tf.sqrt(scale))
        return tf.cast(x, inputs.dtype)


@dataclass(frozen=True)
class Maker:
    """Layers of one memory layout, each a function of what comes before it."""

    data_format: str  # NHWC or NCHW
    seed: int | None = None

    @property
    def _keras_format(self) -> str:
        return "channels_last" if self.data_format == "NHWC" else "channels_first"

    def _channels(self, x: Any) -> int:
        return int(x.shape[self.data_format.index("C")])

    def conv(self, x: Any, filters: int, size: int, stride: int = 1, **more: Any) -> Any:
        """Convolve; `more` is Keras's, but that padding is ``same`` by default."""
        more = {"padding": "same"} | more
        return layers.Conv2D(filters, size, stride, data_format=self._keras_format, **more)(x)

    def norm(self, x: Any) -> Any:
        """Normalise by the batch, as all of CIFAR-10's networks do."""
        axis = self.data_format.index("C")
        return layers.BatchNormalization(axis=axis, momentum=0.9, epsilon=1e-5)(x)

    def norm_relu(self, x: Any) -> Any:
        """Normalise and cut off below zero."""
        return layers.ReLU()(self.norm(x))

    def max_pool(self, x: Any, size: int, padding: str = "valid") -> Any:
        """Take the maximum of windows that are two pixels apart."""
        return layers.MaxPool2D(size, 2, padding, data_format=self._keras_format)(x)

    def halve(self, x: Any) -> Any:
        """Average over two by two pixels."""
        return layers.AveragePooling2D(2, 2, data_format=self._keras_format)(x)

    def mean(self, x: Any) -> Any:
        """Average over all pixels: ``[N, C]``."""
        return layers.GlobalAveragePooling2D(data_format=self._keras_format)(x)

    def flatten(self, x: Any) -> Any:
        """Make rows in the order of NHWC whatever the layout, so that weights mean the same."""
        return layers.Flatten(data_format=self._keras_format)(x)

    def dense_relu(self, x: Any, units: int, dropout: bool = False) -> Any:
        """Append a fully connected layer with ReLU, and after it dropout where asked for."""
        x = layers.Dense(units, activation="relu")(x)
        return layers.Dropout(DROPOUT, seed=self.seed)(x) if dropout else x

    def lrn(self, x: Any) -> Any:
        """Normalise over neighbouring channels."""
        return LocalResponseNormalization(self.data_format)(x)

    def residual_block(self, x: Any, filters: int, stride: int) -> Any:
        """Append a block of two convolutions of 3x3 and what goes past them."""
        past = x
        if (missing := filters - self._channels(x)) > 0:
            past = ThinOut(self.data_format, missing // 2)(x)
        x = self.norm_relu(self.conv(x, filters, 3, stride, use_bias=False))
        x = self.norm(self.conv(x, filters, 3, use_bias=False))
        return layers.ReLU()(layers.Add()([past, x]))

    def dense_block(self, x: Any, convolutions: int, growth: int) -> Any:
        """Append convolutions, each of which sees what all those before it made."""
        for _ in range(convolutions):
            new = self.conv(self.norm_relu(x), growth, 3)
            x = layers.Concatenate(axis=self.data_format.index("C"))([x, new])
        return x


def trivial(make: Maker, x: Any) -> Any:
    """Hardly any work: one unit that sees the whole image, and a layer of 4096."""
    return make.dense_relu(make.dense_relu(make.flatten(x), 1), 4096)


def lenet(make: Maker, x: Any) -> Any:
    """LeNet-5 with wider layers and ReLU."""
    for filters in (32, 64):
        x = make.max_pool(make.conv(x, filters, 5, activation="relu"), 2)
    return make.dense_relu(make.flatten(x), 512)


def alexnet(make: Maker, x: Any) -> Any:
    """AlexNet in one tower, without normalisation over channels."""
    x = make.conv(x, 64, 11, 4, padding="valid", activation="relu")
    x = make.conv(make.max_pool(x, 3), 192, 5, activation="relu")
    x = make.max_pool(x, 3)
    for filters in (384, 384, 256):
        x = make.conv(x, filters, 3, activation="relu")
    x = make.flatten(make.max_pool(x, 3))
    for _ in range(2):
        x = make.dense_relu(x, 4096, dropout=True)
    return x


def alexnet_cifar10(make: Maker, x: Any) -> Any:
    """A small network that tf_cnn_benchmarks calls AlexNet, normalised over channels."""
    x = make.conv(x, 64, 5, activation="relu")
    x = make.lrn(make.max_pool(x, 3, "same"))
    x = make.lrn(make.conv(x, 64, 5, activation="relu"))
    x = make.flatten(make.max_pool(x, 3, "same"))
    return make.dense_relu(make.dense_relu(x, 384), 192)


def resnet_cifar10(blocks: int) -> Callable[[Maker, Any], Any]:
    """Return the residual network of ``6 * blocks + 2`` layers."""

    def body(make: Maker, x: Any) -> Any:
        x = make.norm(make.conv(x, 16, 3, use_bias=False))
        for filters in (16, 32, 64):
            for block in range(blocks):
                x = make.residual_block(x, filters, 2 if filters > 16 and block == 0 else 1)
        return make.mean(x)

    return body


def densenet_cifar10(convolutions: int, growth: int) -> Callable[[Maker, Any], Any]:
    """Return the densenet of three blocks of so many convolutions, of `growth` channels each."""

    def body(make: Maker, x: Any) -> Any:
        x = make.conv(x, 16, 3)
        for _ in range(2):
            x = make.norm_relu(make.dense_block(x, convolutions, growth))
            x = make.conv(x, TRANSITION_CHANNELS * growth, 1, activation="relu")
            x = make.halve(x)
        return make.mean(make.norm_relu(make.dense_block(x, convolutions, growth)))

    return body


BODIES: dict[tuple[str, str], Callable[[Maker, Any], Any]] = {
    ("trivial", "imagenet"): trivial,
    ("lenet", "imagenet"): lenet,
    ("alexnet", "imagenet"): alexnet,
    ("alexnet", "cifar10"): alexnet_cifar10,
    **{
        (f"resnet{depth}", "cifar10"): resnet_cifar10((depth - 2) // 6)
        for depth in (20, 32, 44, 56, 110)
    },
    ("densenet40_k12", "cifar10"): densenet_cifar10(12, 12),
    ("densenet100_k12", "cifar10"): densenet_cifar10(32, 12),
}
APPLICATIONS = {
    "vgg16": tf.keras.applications.VGG16,
    "inception3": tf.keras.applications.InceptionV3,
    "resnet50": tf.keras.applications.ResNet50,
}


def _application(model: str, shape: Sequence[int], data_format: str, classes: int) -> Any:
    """Make a network of tf.keras.applications, which takes its layout from a global setting."""
    before = tf.keras.backend.image_data_format()
    tf.keras.backend.set_image_data_format(
        "channels_last" if data_format == "NHWC" else "channels_first"
    )
    try:
        return APPLICATIONS[model](
            weights=None, input_shape=tuple(shape), classes=classes, classifier_activation=None
        )
    finally:
        tf.keras.backend.set_image_data_format(before)


def build(
    model: str,
    data_set: str,
    data_format: str,
    classes: int | None = None,
    seed: int | None = None,
) -> tf.keras.Model:
    """Return the network from images of `data_format` to logits float32 ``[N, classes]``.

    Layers but the last follow Keras's global precision policy. `classes` are the data set's unless
    given. With `seed` the weights are those of `initial_weights`, else Keras's random
    ones. Weights are in the same order, of the same shapes and mean the same in both layouts.
    ValueError when the model is not for this data set.
    """
    height, width, channels = image_shape(model, data_set)
    shape = (height, width, channels) if data_format == "NHWC" else (channels, height, width)
    classes = classes_of(data_set) if classes is None else classes
    if model in APPLICATIONS:
        network = _application(model, shape, data_format, classes)
        inputs, logits = network.input, network.output
    else:
        inputs = layers.Input(shape)
        body = BODIES[model, data_set](Maker(data_format, seed), inputs)
        logits = layers.Dense(classes)(body)
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
    return [
        _initial(variable.name, tuple(variable.shape), seed, number)
        for number, variable in enumerate(model.weights)
    ]


def _initial(name: str, shape: tuple[int, ...], seed: int, number: int) -> np.ndarray:
    kind = name.rpartition("/")[2].partition(":")[0]
    if kind == "kernel":
        return seeded.kernel(shape, seed, number, float(1 / np.prod(shape[:-1])))
    if kind in ("gamma", "moving_variance"):
        return np.ones(shape, np.float32)
    return np.zeros(shape, np.float32)
