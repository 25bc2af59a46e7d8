"""CosmoFlow training over ranks: the weights are those of one rank that takes all samples."""

import numpy as np
import pytest

from tests.benchmarks.programs import start_helper

pytestmark = pytest.mark.slow

# Float32, summed in another order; single weights are of the size of 0.1.
TOLERANCE = {"rtol": 1e-4, "atol": 2e-6}


def arrays(folder, ranks):
    """Train on some ranks; return what they left, by name of file."""
    folder.mkdir()
    start_helper("train_cosmoflow.py", folder, ranks, ranks=ranks)
    return {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}


def same(ones, others):
    return all(np.allclose(ones[n], others[n], **TOLERANCE) for n in ones if n.startswith("w"))


def test_two_ranks_train_as_one_and_one_as_momentum_says(tmp_path):
    one, two = arrays(tmp_path / "one", 1), arrays(tmp_path / "two", 2)
    assert same(one["rank0"], one["reference"])
    assert not same(one["rank0"], one["first"])
    assert same(two["rank0"], one["rank0"])
    assert same(two["rank0"], two["rank1"])
    losses = [two[f"rank{rank}"]["loss"] for rank in (0, 1)]
    np.testing.assert_allclose(np.mean(losses, axis=0), one["rank0"]["loss"], rtol=1e-4)
    assert (losses[0] != losses[1]).all()
