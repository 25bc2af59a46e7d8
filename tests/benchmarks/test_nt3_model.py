"""NT3's network: its size at full size, and what it computes."""

import math

import numpy as np
import pytest

from tests.benchmarks import nt3_programs
from tests.benchmarks.programs import Later

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
model = Later("nt3.model")

FULL = nt3_programs.DEFAULTS
ORIGINAL = 154_922_918


def layer_shapes(params):
    """The shape of every weight in order, kernels and biases, without making any.

    Convolutions and poolings are without padding, so each shortens the sequence.
    """
    length, channels = params["features"], 1
    shapes = []
    layers = zip(params["filters"], params["kernels"], params["pools"], strict=True)
    for filters, kernel, pool in layers:
        shapes += [(kernel, channels, filters), (filters,)]
        length, channels = (length - kernel + 1) // pool, filters
    width = length * channels
    for units in (*params["dense_units"], model.CLASSES):
        shapes += [(width, units), (units,)]
        width = units
    return shapes


def test_parameters_at_full_size():
    shapes = layer_shapes(FULL)
    assert (773_760, 200) in shapes
    assert sum(map(math.prod, shapes)) == ORIGINAL
    with tf.Graph().as_default():  # where variables are not made before a session starts
        built = model.build(FULL)
        assert [tuple(each.shape) for each in built.trainable_variables] == shapes
        assert built.count_params() == ORIGINAL


@pytest.mark.parametrize("pools", [[1, 10], [3, 2]])
def test_what_it_computes(pools):
    """Against NumPy, with the convolutions and poolings written out."""
    params = FULL | {"features": 90, "filters": [3, 4], "dense_units": [6, 5], "pools": pools}
    tf.random.set_seed(3)
    built = model.build(params)
    weights = [each.numpy() for each in built.trainable_variables]
    assert [each.shape for each in weights] == layer_shapes(params)
    x = np.random.default_rng(1).random((2, 90, 1), np.float32)
    values = x
    for layer in range(2):
        kernel, bias = weights[2 * layer : 2 * layer + 2]
        width = len(kernel)
        length = values.shape[1] - width + 1
        windows = np.stack([values[:, at : at + width] for at in range(length)], 1)
        values = np.maximum(np.einsum("blwc,wcf->blf", windows, kernel) + bias, 0)
        pool = pools[layer]
        length = length // pool * pool
        values = values[:, :length].reshape(2, -1, pool, values.shape[2]).max(2)
    values = values.reshape(2, -1)
    for layer in range(2, 5):
        values = values @ weights[2 * layer] + weights[2 * layer + 1]
        values = np.maximum(values, 0) if layer < 4 else values
    np.testing.assert_allclose(built(x).numpy(), values, rtol=1e-4, atol=1e-5)

    labels = np.array([0, 1], np.int32)
    loss, right = model.measure(labels, tf.constant(values))
    shares = np.exp(values) / np.exp(values).sum(1, keepdims=True)
    np.testing.assert_allclose(loss, -np.log(shares[[0, 1], labels]), rtol=1e-4)
    np.testing.assert_array_equal(right, values.argmax(1) == labels)
