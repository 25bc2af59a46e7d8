"""Sentences on planted steps that were false: what was not planted must not be said."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.aspects.steps.causes import point_causes
from tests.acceptance.faults import (
    Arrays,
    Fault,
    Noise,
    Program,
    always,
    both,
    every,
    within,
)
from tests.unit.findings.test_planted_steps import clear, faulty, measured


def said_of_loss(found: Any) -> str:
    (loss,) = [one for one in found if one.rule == "largest loss"]
    return str(loss.sentence)


def test_a_rank_faster_than_at_the_reference_makes_no_culprit_of_the_others(tmp_path: Path) -> None:
    _, _, found = measured(tmp_path, faulty(compute=always(-20, 1)))
    text = said_of_loss(found)
    assert "rank 1 computes" in text and "faster than at the reference" in text
    assert "rank 0" not in text and "134 %" not in text
    assert "the largest loss is transfer" in text
    assert not [one for one in clear(found) if "ank 0" in one.sentence]
    assert not [one for one in found if "134 %" in one.sentence]


def test_a_straggler_beside_a_faster_rank_costs_what_the_reference_says(tmp_path: Path) -> None:
    """30 ms more on rank 0 and 20 less on rank 1: 30 are lost, not 50."""
    _, _, found = measured(tmp_path, faulty(compute=both(always(30, 0), always(-20, 1))))
    text = said_of_loss(found)
    assert "imbalance, 29" in text or "imbalance, 30" in text, text
    assert "would reach 94 % of the ideal" in text or "would reach 95 %" in text, text


def test_a_rank_that_drifts_into_being_late_is_not_always_the_slowest(tmp_path: Path) -> None:
    def drifts(step: int, rank: int) -> float:
        return max(0.0, 1.5 * (step - 20)) if rank == 1 else 0.0

    _, _, found = measured(tmp_path, faulty(compute=drifts))
    assert not [one for one in found if "always the slowest" in one.sentence]


@pytest.mark.parametrize("steps", [1, 60])
def test_no_straggler_is_not_said_beside_a_clear_imbalance(tmp_path: Path, steps: int) -> None:
    runs = iter(range(100))

    def half(arrays: Arrays) -> None:
        if steps > 1 and next(runs) % 2:
            del arrays["span_input"]

    study, _, found = measured(
        tmp_path, faulty(compute=always(30, 1)), ranks=4, repeats=4, steps=steps, changed=half
    )
    assert not [one for one in found if one.sentence.lower().startswith("no straggler")]
    if steps == 1:
        assert [one for one in found if "is not decided" in one.sentence]
    assert study.rows("ranks")


def lacks(arrays: Arrays) -> None:
    del arrays["span_input"]


def holds_nan(arrays: Arrays) -> None:
    arrays["span_compute"][3, 1] = np.nan


def holds_inf(arrays: Arrays) -> None:
    arrays["span_between"][3, 1] = np.inf


def short(arrays: Arrays) -> None:
    arrays["span_communication"] = arrays["span_communication"][:-5]


def flat(arrays: Arrays) -> None:
    arrays["span_input"] = arrays["span_input"][:, 0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lacks, "span_input is missing"),
        (holds_nan, "span_compute is no finite number in 1 of 60 steps"),
        (holds_inf, "span_between is no finite number in 1 of 60 steps"),
        (short, r"span_communication has the shape (55, 2)"),
        (flat, r"span_input has the shape (60,)"),
    ],
)
def test_runs_that_are_whole_are_used_and_the_others_are_named(
    tmp_path: Path, change: Any, words: str
) -> None:
    runs = iter(range(100))

    def half(arrays: Arrays) -> None:
        if next(runs) % 2:
            change(arrays)

    study, _, found = measured(tmp_path, faulty(compute=always(30, 1)), repeats=6, changed=half)
    assert any(words in one.reason for one in found if one.rule == "warnings")
    (point,) = point_causes(study)
    assert [(one.cause, list(one.ranks)) for one in point.causes] == [("compute", [1])]
    assert point.repeats == 3
    assert clear(found)


def test_one_rank_that_is_late_with_a_gap_does_not_alternate(tmp_path: Path) -> None:
    late = both(within(30, 0, 20, 1), within(30, 40, 60, 1))
    _, ledger, found = measured(tmp_path, faulty(compute=late))
    assert ledger.parts["alternating"].value < 2
    assert ledger.parts["persistent"].value == pytest.approx(20, abs=2)
    text = said_of_loss(found)
    assert "rank 1 computes" in text and "in 40 of 60 steps" in text
    assert "alternating" not in text


def test_nothing_planted_is_still_nothing(tmp_path: Path) -> None:
    _, _, found = measured(tmp_path, Program())
    assert "faster" not in said_of_loss(found)


def once(ms: float, at: int, *ranks: int) -> Fault:
    return lambda step, rank: ms if rank in ranks and step == at else 0.0


def decaying(ms: float, steps: float, *ranks: int) -> Fault:
    return lambda step, rank: ms * math.exp(-step / steps) if rank in ranks else 0.0


def in_blocks(*ms: float) -> Fault:
    """One rank after the other, each for an equal part of 60 steps."""
    return lambda step, rank: ms[rank] if step * len(ms) // 60 == rank else 0.0


ALL_FOUR = (0, 1, 2, 3)
DRAWN = np.random.default_rng(7).random(60)


def test_a_cause_of_a_part_of_a_loss_says_of_which(tmp_path: Path) -> None:
    """Rank 1 computes 30 ms longer in every step, and reads for any time."""
    reads = np.random.default_rng(5).uniform(0, 30, 60)
    program = faulty(compute=always(30, 1), input=lambda step, rank: reads[step] * (rank == 1))
    _, _, found = measured(tmp_path, program, ranks=4)
    text = said_of_loss(found)
    sentence = (
        r"about 6\d % of it because rank 1 computes (29|30).\d ms longer in every step: without "
        r"it the step would be (29|30)\S* ms shorter and would reach \d\d %"
    )
    assert re.search(sentence, text), text


def test_ranks_that_are_slower_in_other_runs_are_not_named(tmp_path: Path) -> None:
    runs = iter(range(100))

    def one_less(arrays: Arrays) -> None:
        rank = next(runs) % 4
        arrays["span_compute"][:, rank] -= 0.04
        arrays["span_communication"][:, rank] += 0.04

    program = faulty(compute=always(40, *ALL_FOUR))
    _, _, found = measured(tmp_path, program, ranks=4, changed=one_less)
    assert "slower computation on most ranks, " in said_of_loss(found)


def test_other_work_on_the_machine_is_no_part_of_a_stall(tmp_path: Path) -> None:
    program = faulty(between=every(300, 3, *ALL_FOUR))
    _, _, found = measured(tmp_path, program, ranks=4, noise=Noise(1, 0.5, spikes=0.15))
    sentence = r"all ranks spend 30\d ms longer between their steps in 20 of 60 steps, every 3rd:"
    assert re.search(sentence, said_of_loss(found)), said_of_loss(found)
