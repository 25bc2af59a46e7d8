"""Causes of longer steps where there are none: noise of several kinds seldom makes one clear."""

import numpy as np
import pytest

from scalesweep.analysis.step_delays import causes_of, delays_of, gain, lower_median
from scalesweep.analysis.step_work import step_work
from scalesweep.aspects.steps.causes import Accounted, cause_rows
from tests.acceptance.faults import Program, always, in_turn, planted_run
from tests.fakes.null_steps import NOISES, clear_causes

CAMPAIGNS = 8


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


def test_fewer_steps_than_a_pattern_needs_have_no_causes() -> None:
    arrays = planted_run(Program(faults={"compute": in_turn(40, 2)}), steps=7)
    work = step_work(arrays, {}, 2)
    assert work is not None
    assert causes_of(work).delays == []


@pytest.mark.filterwarnings("error")
@pytest.mark.slow
def test_odd_times_break_no_table() -> None:
    """Exponential, equal and zero times, long steps, ranks that are ten times as slow."""
    draw = np.random.default_rng(0)
    for _ in range(60):
        steps, ranks = int(draw.integers(8, 60)), int(draw.integers(1, 5))
        runs = []
        for _ in range(3):
            parts = []
            for scale in (0.1, 1.0, 0.2, 0.01, 0.2):
                values = draw.exponential(scale, (steps, ranks))
                values = values if draw.random() < 0.5 else np.full((steps, ranks), scale)
                values[:, int(draw.integers(0, ranks))] *= draw.integers(0, 10)
                values[int(draw.integers(0, steps))] *= draw.integers(1, 50)
                parts.append(values)
            names = ("span_input", "span_compute", "span_communication")
            arrays = {**dict(zip(names, parts, strict=False)), "span_between": parts[4]}
            arrays["step_times"] = np.sum(parts[:4], axis=0)
            work = step_work(arrays, {"mode": {"synchronous": False}}, ranks)
            assert work is not None
            runs.append(Accounted(work, causes_of(work)))
        assert all(np.isfinite(row["gain_ms"].value) for row in cause_rows(runs))
