"""FLOP and bytes of layers: hand values for every kind, and published counts of whole models."""

import dataclasses
import gc

import pytest

from step_layers import costs
from step_layers.costs import Layer, cost

# Of a batch of 2, activations and weights of 4 bytes: FLOP forward, backward, bytes forward,
# backward, worked out by hand.
BY_HAND = {
    # 3x3, 3 -> 8 channels, 4x4 positions, bias: 2*27*8*16 = 6912 a product, 128 values out, 48 in.
    "conv2d": (
        Layer("conv2d", ((4, 4, 3),), (4, 4, 8), (3, 3, 3, 8), 224, bias=True),
        (2 * (6912 + 128), 2 * (13824 + 128), 8 * (48 + 128) + 896, 8 * (128 + 48 + 48) + 1792),
    ),
    # 10 -> 4 units, bias, ReLU, which reads the output once more: 80 + 4; backward 160 + 4.
    "dense": (
        Layer("dense", ((10,),), (4,), (10, 4), 44, bias=True, activation="relu"),
        (2 * 84, 2 * 164, 8 * (10 + 4) + 176, 8 * (4 + 10 + 4 + 10) + 352),
    ),
    # 3 steps, 2 features, 4 units, all states: products 2*3*16*2 and 2*3*16*4, biases 48, gates
    # 108; backward twice the products, 48 and 23*12. Five values of a unit and step are kept.
    "lstm": (
        Layer("lstm", ((3, 2),), (3, 4), (2, 16), 112, bias=True),
        (2 * 732, 2 * 1476, 8 * (6 + 12 + 60) + 448, 8 * (12 + 6 + 12 + 60 + 6) + 896),
    ),
    "batch_norm": (
        Layer("batch_norm", ((3, 3, 2),), (3, 3, 2), weights=4),
        (2 * 108, 2 * 162, 8 * 36 + 16, 8 * 54 + 32),
    ),
    # Five channels: 10 FLOP for the product with the band.
    "lrn": (
        Layer("lrn", ((2, 2, 5),), (2, 2, 5), window=5),
        (2 * 20 * 17, 2 * 20 * 24, 8 * 40, 8 * 80),
    ),
    "activation": (
        Layer("activation", ((6,),), (6,), activation="relu"),
        (0, 0, 8 * 12, 8 * 18),
    ),
    "add": (Layer("add", ((4,), (4,), (4,)), (4,)), (16, 0, 8 * 16, 0)),
    # 2x2 windows on 4x4 pixels: every input value once.
    "average_pool": (
        Layer("average_pool", ((4, 4, 1),), (2, 2, 1), window=4),
        (2 * 16, 2 * 16, 8 * 20, 8 * 20),
    ),
    "max_pool": (Layer("max_pool", ((4, 4, 1),), (2, 2, 1)), (0, 0, 8 * 20, 8 * (4 + 16 + 4 + 16))),
    "concatenate": (Layer("concatenate", ((2,), (3,)), (5,)), (0, 0, 8 * 10, 8 * 10)),
    "pad": (Layer("pad", ((2, 2, 1),), (4, 4, 1)), (0, 0, 8 * 20, 8 * 20)),
    "dropout": (Layer("dropout", ((7,),), (7,)), (14, 14, 8 * 21, 8 * 21)),
    "reshape": (Layer("reshape", ((2, 3),), (6,)), (0, 0, 0, 0)),
    "loss": (Layer("loss", ((10,),), (10,)), (60, 40, 8 * 20, 8 * 30)),
    # Reads weights and gradients, writes weights, once whatever the batch.
    "update": (Layer("update", (), (), weights=1000), (2000, 0, 12000, 0)),
}


def test_every_kind_has_a_hand_value():
    assert set(BY_HAND) == costs.KINDS
    assert set(costs.CLASSES.values()) <= costs.KINDS


@pytest.mark.parametrize("kind", sorted(BY_HAND))
def test_hand_values(kind):
    layer, expected = BY_HAND[kind]
    assert layer.kind == kind
    assert dataclasses.astuple(cost(layer, 2)) == expected


def test_the_first_layer_has_no_gradient_by_its_input():
    layer, _ = BY_HAND["conv2d"]
    found, whole = cost(layer, 2, by_input=False), cost(layer, 2)
    assert found.flop_forward == whole.flop_forward
    assert found.flop_backward == 2 * (6912 + 128)
    # Neither are weights read for it, nor is it written.
    assert whole.bytes_backward - found.bytes_backward == 8 * 48 + 896


@pytest.mark.slow
def test_published_counts(monkeypatch):
    """The models as they are shipped, against counts of others.

    torchvision states multiply-adds of convolutions and dense layers (``_ops`` of its weights):
    15.470 G for vgg16 (torchvision/models/vgg.py); He et al. 3.8 G for resnet50 (arXiv:1512.03385,
    table 1).
    """
    import tensorflow as tf

    from cnn_training import models
    from step_layers import networks

    # Shapes count, not values: vgg16's random weights take seconds.
    zeros = lambda self, shape, dtype=None, **more: tf.zeros(shape, dtype or tf.float32)  # noqa: E731
    monkeypatch.setattr(tf.keras.initializers.GlorotUniform, "__call__", zeros)

    def layers_of(network):
        found = {one.name: costs.describe(one) for one in networks.layers_of(network)}
        del network
        tf.keras.backend.clear_session()
        gc.collect()
        return found

    def products(layers):
        """Multiply-adds of convolutions and dense layers."""
        bare = [
            dataclasses.replace(one, bias=False, activation="linear")
            for one in layers
            if one.kind in costs.PRODUCTS
        ]
        return sum(cost(one, 1).flop_forward for one in bare) / 2

    vgg16 = layers_of(models.build("vgg16", "imagenet", "NHWC"))
    assert products(vgg16.values()) == pytest.approx(15.470e9, rel=0.01)

    resnet50 = layers_of(models.build("resnet50", "imagenet", "NCHW"))
    assert products(resnet50.values()) == pytest.approx(3.86e9, rel=0.001)

    # Every layer of every other model has formulas: these have all kinds of layers there are.
    others = [("alexnet", "imagenet"), ("alexnet", "cifar10"), ("resnet20", "cifar10")]
    kinds = {one.kind for found in (vgg16, resnet50) for one in found.values()}
    for model, data_set in (*others, ("densenet40_k12", "cifar10")):
        kinds |= {one.kind for one in layers_of(models.build(model, data_set, "NHWC")).values()}
    params = {"model": "lstm", "sequence_steps": 35, "seed": 1}
    kinds |= {one.kind for one in layers_of(networks.make(params).model).values()}
    assert kinds == costs.KINDS - {costs.LOSS, costs.UPDATE}
