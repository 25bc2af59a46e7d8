"""The networks of cnn_training: sizes, memory layouts, initial weights."""

import gc

import numpy as np
import pytest

from tests.benchmarks.programs import Later

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
models = Later("cnn_training.models")

# All values, and those that are trained. Of CIFAR-10 as tf_cnn_benchmarks prints them, less its
# step counter and a class of 64 (192, 168) inputs and a bias; the deeper ones differ in one number.
# Of ImageNet from the documentation of tf.keras.applications.
PUBLISHED = {
    ("alexnet", "cifar10"): (1_756_620 - 1 - 193, None),
    ("resnet20", "cifar10"): (271_164 - 1 - 65, None),
    ("resnet32", "cifar10"): (466_492 - 1 - 65, None),
    ("densenet40_k12", "cifar10"): (364_772 - 1 - 169, None),
    ("vgg16", "imagenet"): (138_357_544, 138_357_544),
    ("inception3", "imagenet"): (23_851_784, 23_817_352),
    ("resnet50", "imagenet"): (25_636_712, 25_583_592),
}


@pytest.fixture(autouse=True)
def forget_networks():
    yield
    tf.keras.backend.set_image_data_format("channels_last")
    tf.keras.backend.clear_session()
    gc.collect()


@pytest.mark.parametrize(("model", "data_set"), PUBLISHED)
def test_sizes(model, data_set, monkeypatch):
    # Shapes count, not values: random weights of vgg16 take seconds.
    zeros = lambda self, shape, dtype=None, **more: tf.zeros(shape, dtype or tf.float32)  # noqa: E731
    monkeypatch.setattr(tf.keras.initializers.GlorotUniform, "__call__", zeros)
    # Layouts differ in nothing that is counted, so that each network takes a single one.
    layout = "NCHW" if model == "resnet50" else "NHWC"
    network = models.build(model, data_set, layout)
    trained = sum(int(np.prod(w.shape)) for w in network.trainable_weights)
    everything, wanted = PUBLISHED[model, data_set]
    assert (network.count_params(), trained) == (everything, wanted or trained)
    height, width, channels = models.image_shape(model, data_set)
    shape = (height, width, channels) if layout == "NHWC" else (channels, height, width)
    assert network.input_shape == (None, *shape)
    assert network.output_shape == (None, models.CLASSES[data_set])


@pytest.mark.parametrize(
    ("model", "data_set"), [("lenet", "imagenet"), ("alexnet", "cifar10"), ("resnet20", "cifar10")]
)
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


@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
def test_own_layers_do_what_they_say(layout):
    x = np.random.default_rng(2).normal(0, 20, (2, 6, 8, 24)).astype(np.float32)
    tf.keras.backend.set_image_data_format(layout)

    def call(layer):
        if layout == "channels_last":
            return layer(tf.constant(x)).numpy()
        turned = tf.function(layer)(tf.constant(x.transpose(0, 3, 1, 2)))
        return turned.numpy().transpose(0, 2, 3, 1)

    expected = tf.nn.local_response_normalization(x, 4, 1.0, 0.001 / 9, 0.75).numpy()
    normalised = call(models.LocalResponseNormalization())
    np.testing.assert_allclose(normalised, expected, rtol=1e-5)
    assert abs(normalised - x).max() > 1  # else nothing was normalised

    thin = call(models.ThinOut(12))
    assert thin.shape == (2, 3, 4, 48)
    np.testing.assert_array_equal(thin[..., 12:36], x[:, ::2, ::2])
    assert not thin[..., :12].any()
    assert not thin[..., 36:].any()
