"""The networks of torch_training: cnn_training's residual ones, and GPT-2's shape."""

import json

import numpy as np
import pytest

from tests.benchmarks.programs import start_helper, start_torch
from tests.fakes.torch_python import needs_torch

pytestmark = [pytest.mark.slow, needs_torch]

SEED = 3


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Arrays of Keras's networks, those of PyTorch's, and the facts of the transformer."""
    folder = tmp_path_factory.mktemp("networks")
    start_helper("keras_networks.py", folder / "keras.npz", SEED)
    (done,) = start_torch("torch_networks.py", folder / "torch.npz", SEED)
    assert done.returncode == 0, done.stderr[-4000:]
    arrays = [dict(np.load(folder / name)) for name in ("keras.npz", "torch.npz")]
    return *arrays, json.loads(done.stdout)


@pytest.mark.parametrize(("model", "trained"), [("resnet20", 269_722), ("resnet50", 25_583_592)])
def test_residual_networks_are_those_of_cnn_training(both, model, trained):
    keras, torch, _ = both
    shapes = keras[f"{model}_shapes"].tolist()
    assert torch[f"{model}_shapes"].tolist() == shapes  # layer by layer
    sizes = (np.prod([int(n) for n in shape.strip("(,)").split(",")]) for shape in shapes)
    assert sum(sizes) == trained
    # First weights to the last bit: the order of all weights, statistics too, is Keras's.
    assert torch[f"{model}_digests"].tolist() == keras[f"{model}_digests"].tolist()
    # Padding, shortcuts, strides and constants.
    np.testing.assert_allclose(
        torch[f"{model}_logits"], keras[f"{model}_logits"], rtol=1e-3, atol=1e-3
    )


def test_the_transformer_is_gpt2(both):
    *_, facts = both
    assert facts["sizes"] == [124_439_808, 124_439_808 + 50_257 * 768]
    assert facts["changed"][:5] == [0.0] * 5 and min(facts["changed"][5:]) > 0  # causal
    assert facts["shifted"] and facts["same_gradients"]


def test_operations_are_those_of_the_products(both):
    *_, facts = both
    layers, width, sequence, vocabulary = 2, 32, 8, 50
    products = layers * 12 * width * width + width * vocabulary  # multiplications a token
    attention = layers * 2 * sequence * width
    assert facts["flop"] == [6 * sequence * (products + attention)] * 2
    # Computed again is the forward pass of the blocks: without the last layer, and once.
    blocks = 2 * sequence * (products - 32 * 50 + attention)
    assert facts["recomputed"] == [[0], [blocks]]
    # Forward 3.8 G multiplications and additions (K. He et al., arXiv:1512.03385, table 1), three
    # times that with the backward pass, less the gradients of the images.
    forward = 2 * 3.8e9
    first = 2 * 112 * 112 * 64 * 7 * 7 * 3
    assert facts["resnet50_flop"] == pytest.approx(3 * forward - first, rel=0.02)


def test_tf32_is_allowed_for_convolutions_and_not_for_matrix_products(both):
    *_, facts = both
    assert facts["tf32"] == {
        "products": False, "convolutions": True, "in": ["resnet20", "resnet50"],
    }  # fmt: skip
