"""Layers timed apart: what a run leaves, and that the parts are all of the step."""

import numpy as np
import pytest

from step_layers import costs
from tests.benchmarks.programs import Program, read

pytestmark = pytest.mark.slow
PROGRAM = Program(
    "step_layers",
    {"model": "alexnet", "data_set": "cifar10", "batch_size": 16, "rounds": 2, "least_ms": 5},
)


@pytest.mark.measured
def test_a_rank_times_its_layers(tmp_path):
    native, samples = read(*PROGRAM.start(tmp_path))
    layers = native["notes"]["layers"]
    # 5 layers of weights, LRN, two poolings, the loss and the update; ReLUs are in their layers.
    assert dict(zip(layers["kind"], layers["count"], strict=True)).keys() == {
        "conv2d", "max_pool", "lrn", "dense", costs.LOSS, costs.UPDATE,
    }  # fmt: skip
    assert sum(layers["count"]) == 11
    assert samples["layer_step"].shape == samples["layer_launch"].shape == (2, 1)
    assert samples["layer_forward"].shape == samples["layer_both"].shape
    assert samples["layer_both"].shape == (2, len(layers["name"]), 1)
    # The first convolution: 5x5, 3 to 64 channels, 32x32 pixels, no gradient by the images.
    product = 16 * 2 * 75 * 64 * 1024
    bias = 16 * 64 * 1024
    assert layers["flop_forward"][0] == product + bias
    assert layers["flop_backward"][0] == product + bias
    metrics = {name: one["value"] for name, one in native["metrics"].items()}
    counts = np.array(layers["count"])
    flop = counts @ np.add(layers["flop_forward"], layers["flop_backward"])
    assert metrics["step_flop"] == pytest.approx(flop)
    medians = np.median(samples["layer_both"], axis=0)
    assert metrics["layers_time"] == pytest.approx((counts @ medians).mean())
    assert metrics["layer_coverage"] > 0.5
    assert samples["layer_cores"].shape == (2, 2, 1)
    whole, apart = np.median(samples["layer_cores"], axis=0)[:, 0]
    assert metrics["layer_core_coverage"] == pytest.approx(apart / whole)
    assert metrics["layer_core_coverage"] > 0.5
    # A convolution takes longer with its gradients, and longer than nothing.
    assert (medians[0] > np.median(samples["layer_forward"], axis=0)[0]).all()
    assert (medians[0] > 10 * np.median(samples["layer_launch"], axis=0)).all()
