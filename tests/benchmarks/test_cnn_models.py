"""The networks of cnn_training: sizes, memory layouts, initial weights."""

import gc

import numpy as np
import pytest

from tests.benchmarks.programs import Later

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
models = Later("cnn_training.models")

# As tf_cnn_benchmarks prints them: with 11 classes, moving statistics and the step counter.
PUBLISHED_CIFAR10 = {
    "alexnet": 1_756_620, "resnet20": 271_164, "resnet32": 466_492, "densenet40_k12": 364_772
}  # fmt: skip
# All, and those that are trained; from the documentation of tf.keras.applications.
PUBLISHED_IMAGENET = {
    "vgg16": (138_357_544, 138_357_544),
    "inception3": (23_851_784, 23_817_352),
    "resnet50": (25_636_712, 25_583_592),
}


@pytest.fixture(autouse=True)
def forget_networks():
    yield
    tf.keras.backend.clear_session()
    gc.collect()


# The deeper ones differ in one number.
@pytest.mark.parametrize("model", PUBLISHED_CIFAR10)
def test_sizes_on_cifar10(model):
    network = models.build(model, "cifar10", "NHWC", classes=11)
    assert network.count_params() == PUBLISHED_CIFAR10[model] - 1
    assert network.output_shape == (None, 11)


@pytest.mark.parametrize("model", PUBLISHED_IMAGENET)
def test_sizes_on_imagenet(model, monkeypatch):
    # Shapes count, not values: random weights of vgg16 take seconds.
    zeros = lambda self, shape, dtype=None, **more: tf.zeros(shape, dtype or tf.float32)  # noqa: E731
    monkeypatch.setattr(tf.keras.initializers.GlorotUniform, "__call__", zeros)
    # Layouts differ in nothing that is counted, so one of them in a test is enough.
    data_format = "NCHW" if model == "resnet50" else "NHWC"
    network = models.build(model, "imagenet", data_format)
    everything = network.count_params()
    trained = sum(int(np.prod(w.shape)) for w in network.trainable_weights)
    assert (everything, trained) == PUBLISHED_IMAGENET[model]
    height, width, channels = models.image_shape(model, "imagenet")
    shape = (height, width, channels) if data_format == "NHWC" else (channels, height, width)
    assert network.input_shape == (None, *shape)
    assert network.output_shape == (None, 1000)
    assert tf.keras.backend.image_data_format() == "channels_last"


LAYOUTS = [
    ("lenet", "imagenet"),
    ("alexnet", "cifar10"),
    ("resnet20", "cifar10"),
]


@pytest.mark.parametrize(("model", "data_set"), LAYOUTS)
def test_layouts_agree(model, data_set):
    """Equal weights and images give equal logits, also if rows are made of a layout's pixels."""
    rng = np.random.default_rng(5)
    count = 2 if model == "alexnet" else 4
    images = rng.uniform(-1, 1, (count, *models.image_shape(model, data_set))).astype(np.float32)
    weights, logits = {}, {}
    for data_format in ("NHWC", "NCHW"):
        network = models.build(model, data_set, data_format, seed=3)
        inputs = tf.constant(images if data_format == "NHWC" else images.transpose(0, 3, 1, 2))

        @tf.function
        def forward(inputs, network=network):
            return network(inputs, training=False)

        weights[data_format] = network.get_weights()
        logits[data_format] = forward(inputs).numpy()
    for one, other in zip(*weights.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert logits["NHWC"].std() > 0.01
    np.testing.assert_allclose(logits["NHWC"], logits["NCHW"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_own_layers_do_what_they_say(data_format):
    x = np.random.default_rng(2).normal(0, 20, (2, 6, 8, 24)).astype(np.float32)

    def call(layer):
        if data_format == "NHWC":
            return layer(tf.constant(x)).numpy()
        return (
            tf.function(layer)(tf.constant(x.transpose(0, 3, 1, 2))).numpy().transpose(0, 2, 3, 1)
        )

    expected = tf.nn.local_response_normalization(x, 4, 1.0, 0.001 / 9, 0.75).numpy()
    normalised = call(models.LocalResponseNormalization(data_format))
    np.testing.assert_allclose(normalised, expected, rtol=1e-5)
    assert abs(normalised - x).max() > 1  # else nothing was normalised

    thin = call(models.ThinOut(data_format, 12))
    assert thin.shape == (2, 3, 4, 48)
    np.testing.assert_array_equal(thin[..., 12:36], x[:, ::2, ::2])
    assert not thin[..., :12].any()
    assert not thin[..., 36:].any()
