"""Spans of single steps that cannot be: what a run tolerates of them is no time that was spent."""

import numpy as np
import pytest

from scalesweep.analysis.step_account import account_of
from tests.acceptance.faults import Noise, Program, planted_run


@pytest.mark.parametrize("name", ["span_communication", "span_validation"])
def test_a_span_that_is_longer_than_its_step_counts_as_a_part_of_it(name: str) -> None:
    """One torn value in 200 steps was a stall of the exchange, and validation twice its time."""
    arrays = planted_run(Program(), 2, 200, noise=Noise(step=0.2, run=0))
    arrays["span_validation"] = np.zeros((200, 2))
    true = account_of(arrays, {}, 2)
    arrays[name][50] = 20.0 * arrays["step_times"][50]
    account = account_of(arrays, {}, 2)
    step = float(arrays["step_times"].mean())
    assert account.elapsed == pytest.approx(true.elapsed, abs=step / 150)
    for term in ("stalls", "transfer", "compute", "validation"):
        assert account.term(term) == pytest.approx(true.term(term), abs=step / 150)
