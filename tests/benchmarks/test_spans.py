"""Where the time of a step goes: faults planted in the program come out where they are."""

import numpy as np
import pytest

from harness import spans
from scalesweep.analysis.step_account import StepAccount, account_of
from tests.benchmarks.programs import start_helper

STEPS, DELAY_S = 8, 0.1  # as planted
ATTEMPTS = 3  # other tests on the same cores may add to one of the cases
NOTES = {"spans": {"steps_per_epoch": STEPS}}
TERMS = {"compute": "persistent", "input": "input", "network": "transfer"}


def check_planted(path, term):
    """A sleep in each step is in its own term alone, and terms add up to the step."""
    with np.load(path) as archive:
        arrays = dict(archive)
    account = account_of(arrays, NOTES, 2)
    assert isinstance(account, StepAccount)
    assert 0.95 * DELAY_S <= account.term(term) <= 1.25 * DELAY_S
    for other in {"input", "compute", "persistent", "alternating", "transfer", "barrier"} - {term}:
        assert abs(account.term(other) or 0) < 0.25 * DELAY_S, other
    epochs = arrays["global_times"][1:].max(axis=1)
    assert account.elapsed == pytest.approx(epochs.sum() / len(epochs) / STEPS)
    rest = account.term("unattributed")
    assert sum(account.terms.values()) + rest == pytest.approx(account.elapsed)


@pytest.mark.slow
def test_planted_faults_are_found_where_they_are_and_terms_add_up(tmp_path):
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        start_helper("planted.py", folder, ranks=2)
        try:
            for case, term in TERMS.items():
                check_planted(folder / f"{case}.npz", term)
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


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
