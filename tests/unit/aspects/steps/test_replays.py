"""Causes of longer steps where there are none: noise of several kinds seldom makes one clear."""

import numpy as np
import pytest

from scalesweep.analysis.step_delays import delays_of, gain, lower_median
from scalesweep.analysis.step_work import step_work
from tests.acceptance.faults import Program, always
from tests.fakes.null_steps import NOISES, clear_causes


def test_the_longest_third_of_noise_is_no_stall() -> None:
    """In seeds 39, 54 and 58 it was."""
    assert not any(clear_causes(NOISES["loud"], 2, seed) for seed in range(39, 60))


def test_a_small_straggler_is_clear_in_quiet_noise() -> None:
    program = Program(faults={"compute": always(5, 1)})
    said = [clear_causes(NOISES["quiet"], 2, seed, program) for seed in range(5)]
    assert all(each == [("compute", "every step", "1")] for each in said)


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
    assert work is not None
    np.testing.assert_allclose(work.periods, 0.072)
    (delay,) = delays_of(work)
    assert (delay.cause, delay.pattern, delay.ranks) == ("compute", "every step", [1])
    assert delay.seconds == pytest.approx(0.004)
    assert gain(work, [delay]) == pytest.approx(0.004)
    assert list(lower_median(np.array([[1.0, 3.0], [2.0, 1.0], [5.0, 4.0]]))) == [2.0, 3.0]
