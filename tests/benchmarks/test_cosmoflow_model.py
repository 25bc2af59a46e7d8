"""CosmoFlow's network: published sizes, and the same results as the original's order of layers."""

import numpy as np
import pytest

from tests.benchmarks.programs import Later

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
model = Later("cosmoflow_training.model")
tf_training = Later("harness.tf_training")


def count(network):
    assert len(network.trainable_variables) == len(network.variables)
    return sum(int(np.prod(each.shape)) for each in network.trainable_variables)


@pytest.mark.parametrize(("kernel_size", "published"), [(2, 5_597_604), (3, 8_907_556)])
def test_published_numbers_of_parameters(kernel_size, published):
    assert count(model.build((128, 128, 128, 4), kernel_size=kernel_size)) == published


def original(sizes, weights):
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
def test_results_and_gradients_are_those_of_the_originals_order(kernel_size):
    sizes = {"sample_shape": (9, 8, 12, 4), "conv_layers": 3, "filters": 4}
    sizes["kernel_size"] = kernel_size
    numbers = np.random.default_rng(3)
    tf_training.set_seeds(3, rank=0)
    network = model.build(**sizes)
    for variable in network.trainable_variables:
        if len(variable.shape) == 1:  # biases, which begin as zero
            variable.assign(numbers.normal(scale=0.2, size=variable.shape))
    theirs = original(sizes, network.get_weights())
    x = numbers.normal(size=(3, *sizes["sample_shape"])).astype(np.float32)
    y = numbers.uniform(-1, 1, (3, 4)).astype(np.float32)
    measure = model.make_measure("mse")

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


def test_learning_rate_by_step():
    """The published run on 128 GPUs: 0.001 x 256 / 64, four epochs of warm-up, two decays."""
    peak = tf_training.scaled_rate(0.001, "linear", 256 / 64)
    assert peak == pytest.approx(0.004)
    assert tf_training.scaled_rate(0.001, "sqrt", 4.0) == pytest.approx(0.002)
    assert tf_training.scaled_rate(0.001, "none", 4.0) == pytest.approx(0.001)
    schedule = tf_training.Schedule(0.001, peak, 4, (32, 64), (0.25, 0.125), 1024)
    expected = {0: 0.001, 2 * 1024: 0.0025, 4 * 1024: 0.004, 32 * 1024 - 1: 0.004}
    expected |= {32 * 1024: 0.001, 64 * 1024 - 1: 0.001, 64 * 1024: 0.0005, 190 * 1024: 0.0005}
    for step, rate in expected.items():
        assert schedule(step) == pytest.approx(rate), step
    rising = [schedule(step) for step in range(4 * 1024 + 1)]
    np.testing.assert_allclose(np.diff(rising), 0.003 / 4096, rtol=1e-6)
    assert tf_training.Schedule(0.1, 0.3, 0, (), (), 5)(0) == 0.3
