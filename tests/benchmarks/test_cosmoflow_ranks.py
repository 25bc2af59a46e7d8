"""CosmoFlow training over ranks: the weights are those of one rank that takes all samples."""

import numpy as np
import pytest

from tests.benchmarks.programs import start_helper

pytestmark = pytest.mark.slow

# Float32, summed in another order; single weights are of the size of 0.1.
TOLERANCE = {"rtol": 1e-4, "atol": 2e-6}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Arrays by number of ranks and name of file."""
    found = {}
    for ranks in (1, 2):
        folder = tmp_path_factory.mktemp(f"ranks{ranks}")
        start_helper("train_cosmoflow.py", folder, ranks, ranks=ranks)
        for path in folder.glob("*.npz"):
            with np.load(path) as arrays:
                found[ranks, path.stem] = dict(arrays)
    return found


def same(ones, others):
    return all(np.allclose(ones[n], others[n], **TOLERANCE) for n in ones if n.startswith("w"))


def test_one_rank_trains_as_momentum_says(trained):
    assert same(trained[1, "rank0"], trained[1, "reference"])
    assert not same(trained[1, "rank0"], trained[1, "first"])


def test_two_ranks_end_with_the_weights_of_one(trained):
    assert same(trained[2, "rank0"], trained[1, "rank0"])
    assert same(trained[2, "rank0"], trained[2, "rank1"])


def test_losses_of_ranks_average_to_that_of_one(trained):
    mean = (trained[2, "rank0"]["loss"] + trained[2, "rank1"]["loss"]) / 2
    np.testing.assert_allclose(mean, trained[1, "rank0"]["loss"], rtol=1e-4)
    assert (trained[2, "rank0"]["loss"] != trained[2, "rank1"]["loss"]).all()
