"""The networks of torch_training: GPT-2's shape, and the operations of all."""

import json

import pytest

from tests.benchmarks.programs import PYTORCH, start_helper
from tests.fakes.torch_python import needs_torch

pytestmark = [pytest.mark.slow, needs_torch]


@pytest.fixture(scope="module")
def facts():
    return json.loads(start_helper("torch_networks.py", kind=PYTORCH).stdout)


def test_the_transformer_is_gpt2(facts):
    assert facts["sizes"] == [124_439_808, 124_439_808 + 50_257 * 768]
    assert facts["changed"][:5] == [0.0] * 5 and min(facts["changed"][5:]) > 0  # causal
    assert facts["shifted"]


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
