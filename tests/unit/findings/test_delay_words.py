"""Lengths, steps and ranks of delays in words: what is said was observed."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.acceptance.faults import Arrays, Fault, Noise, Program, always
from tests.unit.findings.test_planted_steps import faulty, measured
from tests.unit.findings.test_planted_truth import ALL_FOUR, said_of_loss

CHECKPOINTS = ("between", "checkpoint")


def at(places: Sequence[int], ms: Sequence[float], *ranks: int) -> Fault:
    """So many ms more in these steps (from 1) of some ranks."""
    sizes = dict(zip(places, ms, strict=True))
    return lambda step, rank: sizes.get(step + 1, 0.0) if rank in ranks else 0.0


FIVE = (10, 20, 30, 40, 50)
LATE = (42, 45, 49, 52, 56, 59)
SAID: dict[str, tuple[Program, str]] = {
    "two lengths": (
        faulty(checkpoint=at((21, 41), (200, 400), 0)),
        r"writes checkpoints for (199|20\d) to (39\d|40\d) ms in 2 of 60 steps, every 20th:",
    ),
    "one that is longer": (
        faulty(checkpoint=at(FIVE, (100, 100, 100, 100, 2000), 0)),
        r"for (99\S*|100\S*) ms \(median; (99\S*|100\S*) to (1,99\d|2,0\d\d) ms\) in 5 of 60",
    ),
    "any lengths": (
        faulty(compute=at(FIVE, (500, 600, 700, 800, 3000), 2)),
        r"rank 2 computes (49\d|50\d) to (2,9\d\d|3,0\d\d) ms longer in 5 of 60 steps, every 10th",
    ),
    "late in the run": (
        faulty(compute=at(LATE, (100,) * 6, 2)),
        r"longer in 6 of 60 steps, all in steps 42 to 59:",
    ),
    "the first and another": (
        faulty(compute=at((1, 21), (1000, 1000), *ALL_FOUR)), r"longer in steps 1 and 21 of 60:",
    ),
    "regular at the begin": (
        faulty(compute=at((10, 20, 30), (300,) * 3, 2)),
        r"longer in 3 of 60 steps, every 10th in steps 10 to 30:",
    ),
    "two causes of the same ranks": (
        faulty(compute=always(30, 0, 1), input=always(10, 0, 1)),
        r"because ranks 0 and 1 compute (29|30)\S* ms longer in every step and wait \S+ ms longer "
        "for input in every step:",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_delays_was_observed(tmp_path: Path, name: str) -> None:
    program, sentence = SAID[name]
    spans = CHECKPOINTS if "checkpoint" in program.faults else ("between",)
    _, _, found = measured(tmp_path, program, spans, ranks=4)
    assert re.search(sentence, said_of_loss(found)), said_of_loss(found)
    assert not [one for one in found if "first 1 of" in one.sentence]


def test_a_stall_of_another_rank_in_each_run_is_said_so(tmp_path: Path) -> None:
    runs = iter(range(100))

    def stalls(arrays: Arrays) -> None:
        rank = next(runs) % 3
        extra = np.zeros((60, 4))
        extra[30, rank] = 1.0
        arrays["span_compute"] += extra
        arrays["step_times"] += extra.max(axis=1, keepdims=True)
        arrays["span_communication"] += extra.max(axis=1, keepdims=True) - extra

    _, _, found = measured(
        tmp_path,
        Program(),
        ranks=4,
        changed=stalls,
        rate=lambda ranks, value: value / (1 + 16.7 / 67 * (ranks > 1)),
    )
    sentence = (
        r"because a rank, another in each run, computes (999|1,00\d) ms longer in step 31 of 60 "
        r"\(in all 3 runs: 1 on rank 0, 1 on rank 1 and 1 on rank 2\):"
    )
    assert re.search(sentence, said_of_loss(found)), said_of_loss(found)


def test_what_may_be_nothing_is_not_said_to_hide_what_is_clear(tmp_path: Path) -> None:
    """Two ranks are late in every step, and other work holds some exchanges back in two of three
    runs."""
    runs = iter([{9: 0.09}, {3: 0.01, 5: 0.01, 7: 0.01, 10: 0.01}, {}] * 2)

    def stalls(arrays: Arrays) -> None:
        for step, seconds in next(runs).items():
            arrays["span_communication"][step] += seconds
            arrays["step_times"][step] += seconds

    faults = {"compute": always(80, 1), "input": always(50, 0)}
    program = Program(compute=2.0, read=0.2, exchange=1.0, inside=0.1, faults=faults)
    _, _, found = measured(
        tmp_path, program, changed=stalls, noise=Noise(step=0.1, run=0.05), steps=25
    )
    sentence = r"because rank 1 computes \S+ ms longer in every step and rank 0 waits \S+ ms longer"
    assert re.search(sentence, said_of_loss(found)), said_of_loss(found)
    assert not any("stalls" in one.sentence for one in found if one.state == "clear")


def test_a_rank_that_prints_fewer_steps_is_named(tmp_path: Path) -> None:
    def ends_early(arrays: Arrays) -> None:
        for values in arrays.values():
            values[50:, 2] = np.nan

    _, _, found = measured(tmp_path, Program(), ranks=4, changed=ends_early)
    warnings = [one.reason for one in found if one.rule == "warnings"]
    assert any("rank 2 has 50 of 60 steps in step_times;" in text for text in warnings), warnings
