"""What a run would take without a cause of longer steps (false ones: bench/step_causes.py)."""

import numpy as np
import pytest

from scalesweep.analysis.step_delays import delays_of, gain, lower_median
from scalesweep.analysis.step_work import step_work


def test_a_replay_by_hand() -> None:
    """Two ranks, 12 steps of 72 ms: rank 1 computes 66 of them, rank 0 62 and waits for 4."""
    shape = (12, 2)
    compute = np.tile([62.0, 66.0], (12, 1)) / 1e3
    arrays = {
        "step_times": np.full(shape, 0.072), "span_input": np.full(shape, 0.001),
        "span_compute": compute, "span_communication": 0.071 - compute,
        "span_between": np.zeros(shape),
    }  # fmt: skip
    work = step_work(arrays, {}, 2)
    np.testing.assert_allclose(work.periods, 0.072)
    (delay,) = delays_of(work)
    assert (delay.cause, delay.pattern, delay.ranks) == ("compute", "every step", [1])
    assert delay.seconds == pytest.approx(0.004)
    assert gain(work, [delay]) == pytest.approx(0.004)
    assert list(lower_median(np.array([[1.0, 3.0], [2.0, 1.0], [5.0, 4.0]]))) == [2.0, 3.0]
