"""FLOP and bytes of layers: hand values for every kind, and published counts of whole models."""

import dataclasses
import math

import pytest

from step_layers import costs
from tests.benchmarks.programs import Later

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
models = Later("cnn_training.models")
networks = Later("step_layers.networks")
parts = Later("step_layers.parts")

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


def test_published_counts(monkeypatch):
    """The models as they are shipped, against counts of others.

    torchvision states multiply-adds of convolutions and dense layers (``_ops`` of its weights):
    15.470 G for vgg16 (torchvision/models/vgg.py); He et al. 3.8 G for resnet50 (arXiv:1512.03385,
    table 1). Every layer of every other model has formulas: these have all kinds of layers.
    """
    # Shapes count, not values: vgg16's random weights take seconds.
    zeros = lambda self, shape, dtype=None, **more: tf.zeros(shape, dtype or tf.float32)  # noqa: E731
    monkeypatch.setattr(tf.keras.initializers.GlorotUniform, "__call__", zeros)
    published = {"vgg16": (15.470e9, 0.01), "resnet50": (3.86e9, 0.001)}
    kinds = set()
    for data_set, names in {
        "imagenet": ("vgg16", "resnet50", "alexnet"),
        "cifar10": ("alexnet", "resnet20", "densenet40_k12"),
        "words": ("lstm",),
    }.items():
        for name in names:
            params = {"model": name, "data_set": data_set, "data_format": "NHWC", "seed": 1}
            layers = parts.layers_of(networks.make(params | {"sequence_steps": 35}))
            kinds |= {costs.kind_of(layer) for layer in layers}
            if name in published:
                count, tolerance = published[name]
                assert products(layers) == pytest.approx(count, rel=tolerance)
            del layers
            tf.keras.backend.clear_session()
    assert kinds == set(costs.CLASSES.values())
