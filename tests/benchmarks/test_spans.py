"""Training by epochs: weights are those of plain arithmetic, faults come out where they are."""

import numpy as np
import pytest

from harness import spans
from scalesweep.analysis.step_account import StepAccount, account_of
from tests.benchmarks.programs import Later, start_helper

EPOCHS, STEPS = 2, 6
NOTES = {"spans": {"steps_per_epoch": STEPS}}
tf_training = Later("harness.tf_training")
TERMS = {"straggler": "persistent", "reader": "input", "network": "transfer"}


@pytest.mark.slow
@pytest.mark.measured
def test_planted_faults_are_found_where_they_are_and_change_no_weights(tmp_path):
    start_helper("planted.py", tmp_path, ranks=2)
    for case, term in TERMS.items():
        with np.load(tmp_path / f"{case}.npz") as archive:
            arrays = dict(archive)
        check_weights(arrays)
        account = account_of(arrays, NOTES, 2)
        assert isinstance(account, StepAccount)
        check_planted(account, arrays, term)


def check_weights(arrays):
    """Two ranks train as one that takes all samples, from rank 0's weights, with momentum 0.9. The
    learning rate rises from 0.01 to its double along the first epoch."""
    first, weights = arrays["first"].T, arrays["weights"].T
    assert (first[0] != first[1])[:4].all()
    mine, speed, losses = first[0].astype(float), 0.0, []
    for number in range(EPOCHS * STEPS):
        x, y = (arrays[name][number % STEPS].astype(float) for name in "xy")
        x = np.concatenate([x, np.ones_like(x[:, :1])], axis=1)  # the bias is the last weight
        error = np.einsum("sfr,f->sr", x, mine) - y[:, 0]
        losses.append((error**2).mean(axis=0))
        gradient = 2 * np.einsum("sfr,sr->f", x, error) / error.size
        speed = 0.9 * speed - 0.01 * (1 + min(number / STEPS, 1)) * gradient
        mine += speed
    np.testing.assert_allclose(weights, [mine] * 2, rtol=1e-4, atol=2e-6)
    by_epoch = np.reshape(losses, (EPOCHS, STEPS, 2)).mean(axis=1)
    np.testing.assert_allclose(arrays["loss"], by_epoch, rtol=1e-4)


def check_planted(account, arrays, term):
    slept = arrays["planted"]
    planted = slept.mean(axis=0).max()
    assert planted >= 0.1
    # On a busy machine one rank oversleeps in some steps, the other in others.
    at_least = slept[:, slept.any(axis=0)].min(axis=1).mean()
    assert 0.95 * at_least <= account.term(term) <= 1.25 * planted
    for other in {"input", "compute", "persistent", "alternating", "transfer", "barrier"} - {term}:
        assert abs(account.term(other) or 0) < 0.25 * planted, other
    epochs = arrays["global_times"][1:].max(axis=1)
    assert account.elapsed == pytest.approx(epochs.sum() / len(epochs) / STEPS)
    rest = account.term("unattributed")
    assert sum(account.terms.values()) + rest == pytest.approx(account.elapsed)


def test_sums_of_an_epoch_by_hand():
    """Two steps, two ranks: input, computation, communication, the time before the step."""
    steps = np.array(
        [
            [[0.1, 0.2], [1.0, 2.0], [1.5, 0.4], [0.0, 0.1]],
            [[0.1, 0.1], [3.0, 1.0], [0.3, 2.3], [0.2, 0.1]],
        ]
    )
    found = spans.of_epoch(steps)
    np.testing.assert_allclose(found["span_input"], [0.2, 0.3])
    np.testing.assert_allclose(found["span_compute"], [4.0, 3.0])
    np.testing.assert_allclose(found["span_communication"], [1.8, 2.7])
    np.testing.assert_allclose(found["span_between"], [0.2, 0.2])
    assert found["span_busiest"] == pytest.approx(2.2 + 3.1)
    assert found["span_transfer"] == pytest.approx(0.4 + 0.3)


@pytest.mark.slow
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
