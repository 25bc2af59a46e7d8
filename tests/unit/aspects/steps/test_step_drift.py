"""Steps that change along a run, and noise that only wanders."""

import re
from pathlib import Path

import numpy as np
import pytest

from scalesweep.aspects.find import find
from scalesweep.aspects.steps.findings import DRIFT, WARM_UP, likeness
from scalesweep.findings.base import CLEAR, Finding
from tests.acceptance.faults import Arrays, Noise, Program
from tests.fakes.planted_steps import planted_study
from tests.unit.findings.test_planted_steps import faulty


def told(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.rule in (DRIFT, WARM_UP)]


CHANGES: dict[str, tuple[Program, int, str]] = {
    "slower": (
        faulty(compute=lambda step, rank: 0.5 * step), 2,
        r"2 ranks: steps become 2\d\S* .* % longer from the first third of a run to the last\.",
    ),
    "one rank": (
        faulty(compute=lambda step, rank: 1.0 * step * (rank == 1)), 3,
        r"% longer .* \(own work of rank 1\)",
    ),
    "faster": (
        faulty(compute=lambda step, rank: 120 * float(np.exp(-step / 40))), 4,
        r"steps become [34]\d\S* .* % shorter",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", CHANGES)
def test_steps_that_change_along_a_run_are_said(tmp_path: Path, row: str) -> None:
    program, ranks, words = CHANGES[row]
    (one,) = told(find(planted_study(tmp_path, program, ranks=ranks)))
    assert one.state == CLEAR
    assert re.search(words, one.sentence), one.sentence


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_warm_up_of_a_few_steps_is_said(tmp_path: Path, ranks: int) -> None:
    """2, 0.5, 0.2, 0.1 s more in the first of 60 steps of 67 ms: 41 % of the time."""
    more = (2000.0, 500.0, 200.0, 100.0)
    slow = faulty(compute=lambda step, rank: more[step] if step < 4 else 0.0)
    (one,) = told(find(planted_study(tmp_path, slow, ranks=ranks)))
    assert one.state == CLEAR
    words = r"the first 4 of 60 steps are a warm-up; without it a step takes 4[01]\S* .* less"
    assert re.search(words, one.sentence), one.sentence


@pytest.mark.parametrize("repeats", [1, 3])
def test_one_run_or_another_curve_in_each_is_not_clear(tmp_path: Path, repeats: int) -> None:
    """20 ms more from a step on that is another one in each run."""
    runs = iter(range(100))

    def later(arrays: Arrays) -> None:
        first = (10, 25, 40)[next(runs) % 3]
        for name in ("step_times", "span_compute"):
            arrays[name][first:] += 0.02

    found = told(find(planted_study(tmp_path, Program(), repeats=repeats, changed=later)))
    assert [one.state == CLEAR for one in found] == [False] * len(found)
    assert repeats > 1 or found[0].reason == "one run"


NOISES = {
    "white": Noise(8, 1), "tails": Noise(4, 1, tails=2.5), "memory": Noise(8, 1, memory=0.9),
    "long memory": Noise(8, 1, memory=0.99), "spikes": Noise(1, 1, spikes=0.3),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_noise_is_no_drift(tmp_path: Path, noise: str) -> None:
    for seed in range(2):
        study = planted_study(tmp_path / str(seed), Program(), noise=NOISES[noise], seed=seed)
        assert not [one for one in told(find(study)) if one.state == CLEAR]


def test_likeness_of_curves() -> None:
    line = np.linspace(60, 90, 60)
    assert likeness([line, 2 * line, line]) == pytest.approx(1)
    assert likeness([line, line[::-1]]) == pytest.approx(0, abs=0.02)
    assert likeness([line]) == 0
    assert likeness([line[:11], line[:11]]) == 0
    assert likeness([np.full(60, 5.0)] * 3) == 0
