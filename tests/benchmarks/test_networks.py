"""Networks: published sizes and operations, costs of layers, layouts, the same ones elsewhere."""

import dataclasses
import functools
import gc
import json
import math

import numpy as np
import pytest

from harness import seeded
from step_layers import costs
from tests.benchmarks.programs import PYTORCH, Later, Program, start_helper
from tests.fakes.torch_python import needs_torch

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
models = Later("cnn_training.models")
networks = Later("step_layers.networks")
parts = Later("step_layers.parts")
cosmoflow = Later("cosmoflow_training.model")
nt3 = Later("nt3.model")
tf_training = Later("harness.tf_training")

# All values, those that are trained, and multiply-adds of convolutions and dense layers. Of
# CIFAR-10 as tf_cnn_benchmarks prints them, less its step counter and a class of 64 (192, 168)
# inputs and a bias; the deeper ones differ in one number. Of ImageNet from the documentation of
# tf.keras.applications; operations as torchvision states them (``_ops`` of vgg16's weights) and
# He et al., 3.8 G for resnet50 (arXiv:1512.03385, table 1).
PUBLISHED = {
    ("alexnet", "cifar10"): (1_756_620 - 1 - 193, None, None),
    ("resnet20", "cifar10"): (271_164 - 1 - 65, 269_722, None),
    ("densenet40_k12", "cifar10"): (364_772 - 1 - 169, None, None),
    ("alexnet", "imagenet"): (None, None, None),
    ("vgg16", "imagenet"): (138_357_544, 138_357_544, pytest.approx(15.470e9, rel=0.01)),
    ("inception3", "imagenet"): (23_851_784, 23_817_352, None),
    ("resnet50", "imagenet"): (25_636_712, 25_583_592, pytest.approx(3.86e9, rel=0.001)),
}


@pytest.fixture(autouse=True)
def forget_networks(request):
    yield
    tf.keras.backend.set_image_data_format("channels_last")
    tf.keras.backend.clear_session()
    if "imagenet" in request.node.name:  # hundreds of MB
        gc.collect()


# Of a batch of 2, activations and weights of 4 bytes: a layer, shapes of its inputs, FLOP forward,
# backward, bytes forward, backward, worked out by hand.
BY_HAND = {
    # 3x3, 3 -> 8 channels, 4x4 positions, bias: 2*27*8*16 = 6912 a product, 128 values out, 48 in.
    "conv2d": (
        lambda layers: layers.Conv2D(8, 3, padding="same"), [(4, 4, 3)],
        (2 * (6912 + 128), 2 * (13824 + 128), 8 * (48 + 128) + 896, 8 * (128 + 48 + 48) + 1792),
    ),
    # 10 -> 4 units, bias, ReLU, which reads the output once more: 80 + 4; backward 160 + 4.
    "dense": (
        lambda layers: layers.Dense(4, "relu"), [(10,)],
        (2 * 84, 2 * 164, 8 * (10 + 4) + 176, 8 * (4 + 10 + 4 + 10) + 352),
    ),
    # 3 steps, 2 features, 4 units, all states: products 2*3*16*2 and 2*3*16*4, biases 48, gates
    # 108; backward twice the products, 48 and 23*12. Five values of a unit and step are kept.
    "lstm": (
        lambda layers: layers.LSTM(4, return_sequences=True), [(3, 2)],
        (2 * 732, 2 * 1476, 8 * (6 + 12 + 60) + 448, 8 * (12 + 6 + 12 + 60 + 6) + 896),
    ),
    "batch_norm": (
        lambda layers: layers.BatchNormalization(), [(3, 3, 2)],
        (2 * 108, 2 * 162, 8 * 36 + 16, 8 * 54 + 32),
    ),
    # Five channels: 10 FLOP for the product with the band.
    "lrn": (
        lambda _: models.LocalResponseNormalization(), [(2, 2, 5)],
        (2 * 20 * 17, 2 * 20 * 24, 8 * 40, 8 * 80),
    ),
    "activation": (lambda layers: layers.ReLU(), [(6,)], (0, 0, 8 * 12, 8 * 18)),
    "add": (lambda layers: layers.Add(), [(4,)] * 3, (16, 0, 8 * 16, 0)),
    # 2x2 windows on 4x4 pixels: every input value once.
    "average_pool": (
        lambda layers: layers.AveragePooling2D(), [(4, 4, 1)], (2 * 16, 2 * 16, 8 * 20, 8 * 20),
    ),
    "max_pool": (
        lambda layers: layers.MaxPooling2D(), [(4, 4, 1)], (0, 0, 8 * 20, 8 * (4 + 16 + 4 + 16)),
    ),
    "concatenate": (lambda layers: layers.Concatenate(), [(2,), (3,)], (0, 0, 8 * 10, 8 * 10)),
    "pad": (lambda layers: layers.ZeroPadding2D(), [(2, 2, 1)], (0, 0, 8 * 20, 8 * 20)),
    "dropout": (lambda layers: layers.Dropout(0.5), [(7,)], (14, 14, 8 * 21, 8 * 21)),
    "reshape": (lambda layers: layers.Flatten(), [(2, 3)], (0, 0, 0, 0)),
}  # fmt: skip


def built(kind):
    """A layer of a kind, called on inputs of its shapes."""
    make, shapes, _ = BY_HAND[kind]
    layer, inputs = make(tf.keras.layers), [tf.keras.Input(shape) for shape in shapes]
    layer(inputs if len(inputs) > 1 else inputs[0])
    return layer


def test_every_kind_has_a_hand_value():
    assert set(BY_HAND) == set(costs.CLASSES.values())


@pytest.mark.parametrize("kind", sorted(BY_HAND))
def test_hand_values(kind):
    layer = built(kind)
    assert costs.kind_of(layer) == kind
    assert dataclasses.astuple(costs.cost(layer, 2)) == BY_HAND[kind][2]


def test_hand_values_of_loss_and_update():
    assert dataclasses.astuple(costs.loss_cost(10, 2)) == (60, 40, 8 * 20, 8 * 30)
    # Reads weights and gradients, writes weights, once whatever the batch.
    assert dataclasses.astuple(costs.update_cost(1000)) == (2000, 0, 12000, 0)


def test_the_first_layer_has_no_gradient_by_its_input():
    layer = built("conv2d")
    first, whole = costs.cost(layer, 2, by_input=False), costs.cost(layer, 2)
    assert first.flop_forward == whole.flop_forward
    assert first.flop_backward == 2 * (6912 + 128)
    # Neither are weights read for it, nor is it written.
    assert whole.bytes_backward - first.bytes_backward == 8 * 48 + 896


def products(layers):
    """Multiply-adds of convolutions and dense layers, without their biases."""
    return (
        sum(
            costs.cost(it, 1).flop_forward - it.use_bias * math.prod(it.output_shape[1:])
            for it in layers
            if costs.kind_of(it) in costs.PRODUCTS
        )
        / 2
    )


@pytest.mark.parametrize(("model", "data_set"), PUBLISHED)
def test_published_sizes_and_operations(model, data_set, monkeypatch):
    # Shapes count, not values: random weights of vgg16 take seconds.
    zeros = lambda self, shape, dtype=None, **more: tf.zeros(shape, dtype or tf.float32)  # noqa: E731
    monkeypatch.setattr(tf.keras.initializers.GlorotUniform, "__call__", zeros)
    # Layouts differ in nothing that is counted, so that each network takes a single one.
    layout = "NCHW" if model == "resnet50" else "NHWC"
    network = models.build(model, data_set, layout)
    trained = sum(int(np.prod(w.shape)) for w in network.trainable_weights)
    layers = parts.layers_of(network)
    counted = network.count_params(), trained, products(layers)
    published = PUBLISHED[model, data_set]
    for own, wanted in zip(counted, published, strict=True):
        assert wanted is None or own == wanted
    assert {costs.kind_of(layer) for layer in layers} <= set(BY_HAND)
    height, width, channels = models.image_shape(model, data_set)
    shape = (height, width, channels) if layout == "NHWC" else (channels, height, width)
    assert network.input_shape == (None, *shape)
    assert network.output_shape == (None, models.CLASSES[data_set])


def test_residual_networks_of_cifar10_have_6_n_and_2_layers():
    bodies = [models.BODIES[f"resnet{depth}", "cifar10"] for depth in (20, 32, 110)]
    assert [body.keywords["blocks"] for body in bodies] == [3, 5, 18]


def test_every_layer_of_the_lstm_has_a_cost():
    network = networks.make({"model": "lstm", "sequence_steps": 35, "seed": 1})
    kinds = {costs.kind_of(layer) for layer in parts.layers_of(network)}
    assert kinds == {"lstm", "dropout", "dense"}


@pytest.mark.parametrize(
    ("model", "data_set"), [("lenet", "imagenet"), ("alexnet", "cifar10"), ("resnet20", "cifar10")]
)
def test_layouts_agree(model, data_set, monkeypatch):
    """Equal weights and images give equal logits, also if rows are made of a layout's pixels."""
    short = functools.partial(models.resnet_cifar10, blocks=1)
    monkeypatch.setitem(models.BODIES, ("resnet20", "cifar10"), short)
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


@pytest.mark.parametrize(("kernel_size", "published"), [(2, 5_597_604), (3, 8_907_556)])
def test_cosmoflow_has_the_published_number_of_parameters(kernel_size, published):
    network = cosmoflow.build((128, 128, 128, 4), kernel_size=kernel_size)
    assert network.count_params() == published
    assert len(network.trainable_variables) == len(network.variables)


def cosmoflow_in_order(sizes, weights):
    """The layers in the order of the original, with biases in the convolutions."""
    layers = tf.keras.layers
    network = tf.keras.Sequential([tf.keras.Input(sizes["sample_shape"])])
    for number in range(sizes["conv_layers"]):
        network.add(
            layers.Conv3D(sizes["filters"] * 2**number, sizes["kernel_size"], padding="same")
        )
        network.add(layers.LeakyReLU())
        network.add(layers.MaxPool3D(pool_size=2))
    network.add(layers.Flatten())
    for units in (128, 64):
        network.add(layers.Dense(units))
        network.add(layers.LeakyReLU())
    network.add(layers.Dense(4, activation="tanh"))
    network.add(layers.Lambda(lambda x: x * 1.2))
    network.set_weights(weights)
    return network


@pytest.mark.parametrize("kernel_size", [2, 3])
def test_cosmoflow_has_results_and_gradients_of_the_originals_order(kernel_size):
    sizes = {"sample_shape": (9, 8, 12, 4), "conv_layers": 3, "filters": 4}
    sizes["kernel_size"] = kernel_size
    numbers = np.random.default_rng(3)
    tf_training.set_seeds(3, rank=0)
    network = cosmoflow.build(**sizes)
    for variable in network.trainable_variables:
        if len(variable.shape) == 1:  # biases, which begin as zero
            variable.assign(numbers.normal(scale=0.2, size=variable.shape))
    theirs = cosmoflow_in_order(sizes, network.get_weights())
    x = numbers.normal(size=(3, *sizes["sample_shape"])).astype(np.float32)
    y = numbers.uniform(-1, 1, (3, 4)).astype(np.float32)
    measure = cosmoflow.make_measure("mse")

    # A graph, as training is: outside of one, TensorFlow's pooling of volumes on CPUs hands a
    # gradient to every voxel that is nearly the largest, so that sums over voxels are wrong.
    @tf.function
    def results(network):
        with tf.GradientTape() as tape:
            prediction = network(x, training=True)
            loss = tf.reduce_mean(measure(y, prediction)[0])
        return prediction, tape.gradient(loss, network.trainable_variables)

    found = [results(each) for each in (network, theirs)]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-6)
    assert abs(found[0][0].numpy()).max() > 0.1
    for ours, other in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-4, atol=1e-6)
        assert abs(other.numpy()).max() > 1e-4


def test_nt3_at_full_size():
    with tf.Graph().as_default():  # where variables are not made before a session starts
        built = nt3.build(Program("nt3", {}).defaults)
        shapes = [tuple(each.shape) for each in built.trainable_variables]
        assert shapes[:4] == [(20, 1, 128), (128,), (10, 128, 128), (128,)]
        assert shapes[4] == (773_760, 200)
        assert built.count_params() == 154_922_918  # the original's


@pytest.fixture(scope="module")
def facts():
    return json.loads(start_helper("torch_networks.py", kind=PYTORCH).stdout)


@needs_torch
def test_the_transformer_is_gpt2(facts):
    assert facts["sizes"] == [124_439_808, 124_439_808 + 50_257 * 768]
    assert facts["changed"][:5] == [0.0] * 5 and min(facts["changed"][5:]) > 0  # causal
    assert facts["shifted"]


@needs_torch
def test_operations_are_those_of_the_products(facts):
    layers, width, sequence, vocabulary = 2, 32, 8, 50
    products = layers * 12 * width * width + width * vocabulary  # multiplications a token
    attention = layers * 2 * sequence * width
    assert facts["flop"] == [6 * sequence * (products + attention)] * 2
    # Forward 3.8 G multiplications and additions (K. He et al., arXiv:1512.03385, table 1), three
    # times that with the backward pass, less the gradients of the images.
    forward = 2 * 3.8e9
    first = 2 * 112 * 112 * 64 * 7 * 7 * 3
    assert facts["resnet50_flop"] == pytest.approx(3 * forward - first, rel=0.02)


@needs_torch
def test_resnet50_is_the_same_in_both_frameworks(facts, monkeypatch):
    """The number of its trained values, and the loss of two images."""
    monkeypatch.setitem(models.SIZES, "resnet50", 64)
    images, labels = seeded.fixed_batch((64, 64, 3), 1000, 5, 0, 2)
    network = models.build("resnet50", "imagenet", "NHWC", seed=5)
    logits = network(tf.constant(images), training=True)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    assert facts["resnet50_loss"] == pytest.approx(float(tf.reduce_mean(losses)), rel=1e-4)
    assert facts["resnet50_size"] == PUBLISHED["resnet50", "imagenet"][1]
