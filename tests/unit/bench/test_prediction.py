"""The bench of predictions: rivals, laws, and the weights of clusters."""

import numpy as np
import pytest

from bench.lib.prediction_calibration import published
from bench.lib.prediction_laws import STRONG, WEAK, simulate
from bench.lib.prediction_rivals import RIVALS
from bench.prediction import OURS, halves
from scalesweep.analysis.prediction.series import make_series

RANKS = 2.0 ** np.arange(6)


@pytest.mark.parametrize(
    ("rival", "scaling", "law"),
    [
        ("a + b log2 p", "weak", lambda p: 10 + 0.5 * np.log2(p)),
        ("Ernest", "weak", lambda p: 10 + 0.5 * np.log2(p) + 0.1 * p),
        ("Ernest", "strong", lambda p: 100 + p * (0.3 + 0.01 * p)),  # of the time: b/p, 1, p
        ("USL", "weak", lambda p: 10 * (1 + 0.01 * (p - 1) + 0.001 * p * (p - 1))),
        ("Extra-P", "weak", lambda p: 10 + 0.2 * np.sqrt(p) * np.log2(p)),
    ],
)
def test_a_rival_continues_its_own_law(rival: str, scaling: str, law: object) -> None:
    assert callable(law)
    targets = np.array([64.0, 256.0])
    found = RIVALS[rival](make_series(RANKS, law(RANKS), scaling), targets, 0.9)
    assert found.cost == pytest.approx(law(targets), rel=1e-6)


def test_twelve_kinds_of_laws_are_positive_and_repeatable() -> None:
    assert len({*WEAK, *STRONG}) == 12
    for kind in (*WEAK, *STRONG):
        for change in (False, True):
            one, other = (simulate(kind, np.random.default_rng(3), change) for _ in range(2))
            assert (one.cost > 0).all() and (one.cost == other.cost).all()


@pytest.mark.slow
def test_a_cluster_counts_as_much_as_any_other() -> None:
    rows = published("weak")
    weights = {name: rows.weight[rows.cluster == name].sum() for name in set(rows.cluster)}
    assert len(weights) == 11
    assert max(weights.values()) <= 3  # one for each way to know the machine


def test_series_whose_smaller_half_is_too_short_are_left_out() -> None:
    assert not halves(make_series(RANKS[:4], np.ones(4)))
    assert halves(make_series(RANKS[:5], np.ones(5))) == [3]
    assert OURS == "scalesweep"
