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
    in_turn,
    within,
)
from tests.unit.findings.test_planted_steps import clear, faulty, measured


def said_of_loss(found: Any) -> str:
    (loss,) = [one for one in found if one.rule == "largest loss"]
    return str(loss.text)


def test_a_rank_faster_than_at_the_reference_makes_no_culprit_of_the_others(tmp_path: Path) -> None:
    _, _, found = measured(tmp_path, faulty(compute=always(-20, 1)))
    text = said_of_loss(found)
    assert "rank 1 computes" in text and "faster than at the reference" in text
    assert "rank 0" not in text and "134 %" not in text
    assert "the largest part is transfer" in text
    assert not [one for one in clear(found) if "ank 0" in one.text]
    assert not [one for one in found if "134 %" in one.text]


def test_a_straggler_beside_a_faster_rank_costs_what_the_reference_says(tmp_path: Path) -> None:
    """30 ms more on rank 0 and 20 less on rank 1: 30 are lost, not 50."""
    _, _, found = measured(tmp_path, faulty(compute=both(always(30, 0), always(-20, 1))))
    text = said_of_loss(found)
    assert "imbalance), 29" in text or "imbalance), 30" in text, text
    assert "would reach 94 % of the ideal" in text or "would reach 95 %" in text, text


def test_a_rank_that_drifts_into_being_late_is_not_always_the_slowest(tmp_path: Path) -> None:
    def drifts(step: int, rank: int) -> float:
        return max(0.0, 1.5 * (step - 20)) if rank == 1 else 0.0

    _, _, found = measured(tmp_path, faulty(compute=drifts))
    assert not [one for one in found if "always the slowest" in one.text]


@pytest.mark.parametrize("steps", [1, 60])
def test_no_straggler_is_not_said_beside_a_clear_imbalance(tmp_path: Path, steps: int) -> None:
    runs = iter(range(100))

    def half(arrays: Arrays) -> None:
        if steps > 1 and next(runs) % 2:
            del arrays["span_input"]

    study, _, found = measured(
        tmp_path, faulty(compute=always(30, 1)), ranks=4, repeats=4, steps=steps, changed=half
    )
    assert not [one for one in found if one.text.lower().startswith("no straggler")]
    if steps == 1:
        assert [one for one in found if "is not decided" in one.text]
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
    assert any(words in one.text for one in found if one.rule == "warnings")
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
# What is planted, on how many ranks; the largest term and its ms, what the sentence on it says, and
# the share of the ideal that is reached without it, in percent.
SAID: dict[str, tuple[Program, int, str, float, str, int]] = {
    "pauses of all": (
        faulty(between=every(300, 3, *ALL_FOUR)), 4, "stalls", 100,
        r"because all ranks spend 30\d ms longer between their steps in 20 of 60 steps, every 3rd:",
        94,
    ),
    "seldom pauses of all": (
        faulty(between=every(300, 10, *ALL_FOUR)), 4, "stalls", 30,
        r"because all ranks spend 30\d ms longer between their steps in 6 of 60 steps, every 10th:",
        94,
    ),
    "one pause of all": (
        faulty(between=once(5000, 0, *ALL_FOUR)), 4, "stalls", 83.5,
        r"because all ranks spend [45],[09]\d\d ms .* in the first step of 60, as in a warm-up", 94,
    ),
    "pauses of one rank after the other": (
        faulty(between=in_turn(40, 4)), 4, "alternating", 40,
        r"another rank in each step \(0, 1, 2 and 3\) spends 40.\d ms longer", 94,
    ),
    "pauses of most": (
        faulty(between=every(300, 3, 0, 1, 2)), 4, "stalls", 100,
        r"because ranks 0, 1 and 2 spend 30\d ms longer between their steps in 20 of 60", 94,
    ),
    "frequent pauses of most": (
        faulty(between=every(100, 2, *range(5))), 8, "between", 50,
        r"spend 100\S* ms longer between their steps in 30 of 60 steps, every 2nd:", 93,
    ),
    "pauses of all beside time in every step": (
        faulty(between=both(every(300, 3, *ALL_FOUR), always(40, 0))), 4, "stalls", 100,
        r"because all ranks spend 30\d ms longer .* in 20 of 60 steps, every 3rd:", 59,
    ),
    "pauses of all beside stalls of the input": (
        faulty(between=every(300, 3, *ALL_FOUR), input=every(200, 5, *ALL_FOUR)), 4, "stalls", 140,
        r"because all ranks spend 30\d ms longer between their steps in 20 of 60 steps, every 3rd "
        r"and wait 20\d ms longer for input in 12 of 60 steps, every 5th: without them ",
        93,
    ),
    "pauses of all in a part": (
        faulty(between=within(40, 0, 30, *ALL_FOUR)), 4, "between", 20,
        r"because all ranks spend 40.\d ms longer between their steps in steps 1 to 30 of 60:", 94,
    ),
    "pauses in most of the steps": (
        faulty(between=lambda step, rank: 40.0 * (step % 10 < 9)), 4, "between", 36,
        r"because all ranks spend 40.\d ms longer between their steps in 54 of 60 steps:", 94,
    ),
    "pauses that decay": (
        faulty(between=decaying(200, 10, *ALL_FOUR)), 4, "between", 35,
        r"ms: without it the step would reach", 94,
    ),
    "slow reading in every second step beside a straggler": (
        faulty(
            compute=always(40, 0),
            input=both(every(80, 2, 0, 1), lambda step, rank: 20.0 * (step // 30 == rank)),
        ), 2, "persistent", 49.5, "because rank 0 computes .* and 59 % also without this: one rank "
        "at a time waits 20.. ms longer for input", 50,
    ),
    "pauses that decay slowly": (
        faulty(between=decaying(60, 40, *ALL_FOUR)), 4, "between", 31.5,
        r"because all ranks spend 1\d\S* to 5\d\S* ms between their steps in every step:", 93,
    ),
    "a rank behind, and more so in a part": (
        faulty(compute=both(always(30, 1), within(30, 30, 60, 1))), 4, "persistent", 45,
        r"because rank 1 computes (29|30)\S* to (59|60)\S* ms longer in every step:", 94,
    ),
    "pauses of any length": (
        faulty(between=lambda step, rank: 10.0 * (step % 10)), 4, "between", 45,
        r"ms: without it the step would reach", 93,
    ),
    "slowness that moves": (
        faulty(compute=in_blocks(40, 40, 40, 40)), 4, "persistent", 39,
        r"because one rank at a time computes 40.\d ms longer \(rank 0 in steps 1 to 15, rank 1 in "
        r"16 to 30, rank 2 in 31 to 45 and rank 3 in 46 to 60 of 60\): without it", 94,
    ),
    "slowness that moves between two": (
        faulty(compute=in_blocks(40, 40)), 2, "persistent", 39.8,
        r"one rank at a time computes 40.\d ms longer \(rank 0 in steps 1 to 30 and rank 1 in", 94,
    ),
    "slowness that moves among eight": (
        faulty(input=in_blocks(*[40.0] * 8)), 8, "persistent", 38.7,
        r"one rank at a time waits 40.\d ms longer for input \(each in a part of its own of the 60 "
        r"steps\): without it", 93,
    ),
    "unequal slowness that moves": (
        faulty(compute=in_blocks(20, 60, 30, 50)), 4, "persistent", 39,
        r"one rank at a time computes 20.\d to \S+ ms longer \(rank 0 20.\d ms in steps 1 to 15, "
        r"rank 1 (59|60).\d ms in 16 to 30, ", 94,
    ),
    "slowness that moves from pair to pair": (
        faulty(compute=both(within(40, 0, 30, 0, 1), within(40, 30, 60, 2, 3))), 4, "persistent",
        39.5, r"because all ranks compute .* \(rank 0 in steps 1 to 30, rank 1 in 1 to 30, ", 93,
    ),
    "one half by another cause": (
        faulty(compute=within(40, 0, 30, 1), input=within(40, 30, 60, 1)), 4, "persistent", 39.2,
        "because rank 1 waits 40.. ms longer for input in steps 31 to 60 of 60 and computes "
        r"39.\d ms longer in steps 1 to 30 of 60: without them the step would reach", 93,
    ),
    "every second step by another cause": (
        faulty(compute=every(40, 2, 2), input=lambda step, rank: 40.0 * (rank == 1 > step % 2)),
        4, "persistent", 39.2, "because rank . .* every 2nd and rank . .* every 2nd: without them",
        94,
    ),
    "thirds by other causes": (
        faulty(
            compute=within(40, 0, 20, 1), input=within(40, 20, 40, 1),
            between=within(40, 40, 60, 1),
        ), 3, "persistent", 39.4,
        "because rank 1 waits .* and spends .* and computes .*: without them", 93,
    ),
    "another cause on each rank in a part": (
        faulty(compute=within(30, 0, 30, 1), input=within(30, 0, 30, 0)), 2, "mixed", 14.8,
        r"because rank 1 computes \S+ ms longer in steps 1 to 30 of 60 and rank 0 waits", 94,
    ),
    "most of the steps": (
        faulty(compute=lambda step, rank: 40.0 * (rank == 1 and step % 10 < 9)), 4, "persistent",
        36, "because rank 1 computes", 94,
    ),
    "stalls of two lengths": (
        faulty(compute=both(every(300, 10, *ALL_FOUR), every(60, 3, *ALL_FOUR))), 4, "stalls", 50,
        r"compute 60.\d ms \(median; 5\d.\d to 36\d ms\) longer in 24 of 60 steps:", 93,
    ),
    "stalls that grow": (
        faulty(compute=lambda step, rank: (50.0 + 5 * step) * (rank == 1 and step % 7 == 6)), 4,
        "stalls", 27, r"because rank 1 computes \d+\S* to 3\d\d ms longer in 8 of 60 steps,",
        93,
    ),
    "stalls of two ranks, at times together": (
        faulty(compute=both(every(500, 10, 1), every(100, 4, 2))), 4, "stalls", 70,
        r"because ranks 1 and 2 compute (499|500) and (99.\d|100) ms longer in 18 of 60 steps "
        r"\(6 on rank 1 and 15 on rank 2\):", 94,
    ),
    "pauses of all and of one after the other": (
        faulty(between=both(every(300, 3, *ALL_FOUR), in_turn(40, 4))), 4, "stalls", 113,
        r"because all ranks spend 30\d ms longer between their steps in 20 of 60 steps, every 3rd:",
        67,
    ),
    "two ranks together": (
        faulty(compute=every(60, 2, 0, 1)), 4, "persistent", 30.2,
        r"because ranks 0 and 1 compute (59|60)\S* ms longer in 30 of 60 steps, every 2nd:", 94,
    ),
    "half of the steps, at random": (
        faulty(compute=lambda step, rank: 60.0 * (rank == 1 and DRAWN[step] < 0.5)), 3,
        "persistent", 29, r"because rank 1 computes (59|60)\S* ms longer in \d\d of 60 steps:", 93,
    ),
    "one of two ranks, at random": (
        faulty(compute=lambda step, rank: 40.0 * ((DRAWN[step] < 0.5) == rank)), 2, "alternating",
        40, r"one rank at a time \(0 and 1\) computes 40\S* ms longer, in 60 of 60 steps", 95,
    ),
    "pairs of ranks in turn": (
        faulty(between=lambda step, rank: 40.0 * (rank // 2 == step % 2)), 4, "alternating", 40.4,
        r"because other ranks in each step \(0, 1, 2 and 3\) spend 40\S* ms longer between", 94,
    ),
    "groups of ranks in parts of their own": (
        faulty(compute=lambda step, rank: 40.0 * (step * 4 // 60 == rank // 4)), 16, "persistent",
        39.6, r"all ranks compute 40\S* ms longer \(not all in the same part of the 60 steps\)", 92,
    ),
    "computation that decays": (
        faulty(compute=decaying(200, 10, *ALL_FOUR)), 4, "slower", 34.5,
        "ms: without it the step would reach", 93,
    ),
}  # fmt: skip


# What is said beside the largest loss, where anything is.
BESIDE = {
    "pauses of all beside time in every step": "Rank 0 spends 40.* in every step",
    "pauses of all and of one after the other": "One rank at a time spends 40.* in 40 of 60 steps",
}


@pytest.mark.parametrize("name", SAID)
def test_a_sentence_says_all_of_what_was_planted_and_nothing_else(
    tmp_path: Path, name: str
) -> None:
    program, ranks, term, size, sentence, reached = SAID[name]
    _, ledger, found = measured(tmp_path, program, ranks=ranks)
    terms = {key: part.loss or 0.0 for key, part in ledger.parts.items()}
    assert max(terms, key=lambda key: terms[key]) == term
    assert terms[term] == pytest.approx(size, abs=1), terms
    text = said_of_loss(found)
    assert re.search(sentence, text), text
    told = re.search(r"would reach (\d+) % of the ideal", text)
    assert told is not None and abs(int(told[1]) - reached) <= 1, text
    others = [one.text for one in clear(found) if one.rule != "largest loss"]
    assert len(others) == (name in BESIDE), others
    assert all(re.match(BESIDE[name], one) for one in others), others


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


# Which ranks compute 40 ms longer, and where the sentence says they do; 3 ranks at least.
SLOWER: dict[str, tuple[int, tuple[int, ...], str]] = {
    "all": (4, ALL_FOUR, "on each rank"),
    "most of four": (4, (0, 1, 2), r"on 3 of 4 ranks \(not on rank 3\)"),
    "most of three": (3, (0, 2), r"on 2 of 3 ranks \(not on rank 1\)"),
    "most of eight": (8, (0, 1, 2, 6, 7), r"on 5 of 8 ranks \(not on ranks 3, 4 and 5\)"),
}


@pytest.mark.parametrize("name", SLOWER)
def test_computation_slower_than_at_the_reference_is_said_of_the_ranks_that_have_it(
    tmp_path: Path, name: str
) -> None:
    ranks, slow, where = SLOWER[name]
    _, _, found = measured(tmp_path, faulty(compute=always(40, *slow)), ranks=ranks)
    text = said_of_loss(found)
    assert re.search(f"slower than at the reference {where}, (39|40)", text), text
    assert [one.text for one in clear(found)] == [text]


def test_ranks_that_are_slower_in_other_runs_are_not_named(tmp_path: Path) -> None:
    runs = iter(range(100))

    def one_less(arrays: Arrays) -> None:
        rank = next(runs) % 4
        arrays["span_compute"][:, rank] -= 0.04
        arrays["span_communication"][:, rank] += 0.04

    program = faulty(compute=always(40, *ALL_FOUR))
    _, _, found = measured(tmp_path, program, ranks=4, changed=one_less)
    assert "slower than at the reference on most ranks, " in said_of_loss(found)


def test_host_time_of_most_ranks_is_not_said_of_all(tmp_path: Path) -> None:
    _, _, found = measured(tmp_path, faulty(between=always(40, 0, 1, 2)), ranks=4)
    text = said_of_loss(found)
    assert "is host time between steps, 4" in text or "is host time between steps, 39" in text, text
    assert "because ranks 0, 1 and 2 spend" in text and "every rank" not in text


def test_other_work_on_the_machine_is_no_part_of_a_stall(tmp_path: Path) -> None:
    program = faulty(between=every(300, 3, *ALL_FOUR))
    _, _, found = measured(tmp_path, program, ranks=4, noise=Noise(1, 0.5, spikes=0.15))
    sentence = r"all ranks spend 30\d ms longer between their steps in 20 of 60 steps, every 3rd:"
    assert re.search(sentence, said_of_loss(found)), said_of_loss(found)


# Of time between steps that only other ranks' waiting shows, or that has a name: spans, program,
# term and ms, sentence.
KNOWN_OTHERWISE: dict[str, tuple[tuple[str, ...], Program, str, float, str]] = {
    "not measured, of most ranks": (
        (), faulty(between=always(40, 0, 1, 2)), "between", 39.3,
        r"because ranks 0, 1 and 2 spend at least (39|40)\S* ms longer between their steps in",
    ),
    "not measured, of most ranks at times": (
        (), faulty(between=every(300, 2, 0, 1, 2)), "between", 149.4,
        "because ranks 0, 1 and 2 spend at least 300 ms longer between their steps in 30 of 60",
    ),
    "named, of one rank after the other": (
        ("between", "logging"), faulty(logging=in_blocks(40, 40, 40, 40)), "logging", 39,
        r"because one rank at a time \(0, 1, 2 and 3\) writes logs for 40\S* ms, in 60 of 60 steps",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN_OTHERWISE)
def test_time_between_steps_that_is_known_otherwise_is_said_too(tmp_path: Path, name: str) -> None:
    spans, program, term, size, sentence = KNOWN_OTHERWISE[name]
    _, ledger, found = measured(tmp_path, program, spans, ranks=4)
    losses = {key: part.loss or 0.0 for key, part in ledger.parts.items()}
    assert losses[term] == pytest.approx(size, abs=1), losses
    text = said_of_loss(found)
    assert re.search(sentence, text) and re.search("would reach 9[34] % of", text), text
    assert [one.text for one in clear(found)] == [text]
