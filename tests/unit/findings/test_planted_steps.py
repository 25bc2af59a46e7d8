"""Faults planted in the steps of a run: terms, ranks, causes and what would be without them.

Each row of the worked examples in docs/efficiency.md, through records, tables and findings.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.core.paths import REPO
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.step_causes import PointCauses, point_causes
from scalesweep.experiment.step_ledger import Ledger, ledgers
from scalesweep.findings import find
from scalesweep.findings.base import CONFIRMED, Finding
from scalesweep.findings.card import card_of
from tests.fakes.planted_steps import (
    Arrays,
    Fault,
    Noise,
    Program,
    always,
    both,
    every,
    in_turn,
    on_any,
    planted_study,
    within,
)

CLEAR = ("largest loss", "causes", "stragglers")


def faulty(batch_ms: float = 0.0, phases: bool = False, **faults: Fault) -> Program:
    return Program(batch_ms=batch_ms, phases=phases, faults=faults)


# Name -> program, spans kept, the largest term and its ms, what the clear sentence says, the share
# of the ideal that is reached without it, in percent; the reference takes about 62.4 ms.
ROWS: dict[str, tuple[Program, tuple[str, ...], str, float, str, float]] = {
    "both ranks late": (
        faulty(compute=always(30, 1), input=always(30, 0)), ("between",), "mixed", 30,
        r"rank 1 computes 30\S* ms longer in every step and rank 0 waits 30\S* ms longer for input "
        "in every step", 94,
    ),
    "input-bound": (
        faulty(100, compute=always(30, 1)), ("between",), "input", 35,
        "waiting for input.*sets the pace of ranks 0 and 1", 66,
    ),
    "input-bound in other phases": (
        faulty(200, phases=True), ("between",), "input", 135, "waiting for input.*sets the pace",
        95,
    ),
    "slow reader": (
        faulty(input=always(40, 1)), ("between",), "persistent", 40,
        "rank 1 waits 40.0 ms longer for input in every step", 94,
    ),
    "alternating": (
        faulty(compute=in_turn(40, 2)), ("between",), "alternating", 40,
        r"another rank in each step \(0 and 1\) computes 40\S* ms longer, in 60 of 60 steps", 95,
    ),
    "random stalls": (
        faulty(compute=on_any(500, 5, 2)), ("between",), "stalls", 100,
        r"one rank at a time computes 500 ms longer in 12 of 60 steps, every 5th \(steps by rank "
        r"0: 5, 1: 7\)", 94,
    ),
    "rare stalls": (
        faulty(compute=on_any(500, 25, 2)), ("between",), "stalls", 16.7,
        "one rank at a time computes 500 ms longer in 2 of 60 steps, every 25th", 94,
    ),
    "stalls of both": (
        faulty(compute=every(500, 25, 0, 1)), ("between",), "stalls", 16.7,
        "ranks 0 and 1 compute 50. ms longer in 2 of 60 steps, every 25th", 94,
    ),
    "logging on rank 0": (
        faulty(between=always(40, 0)), ("between",), "persistent", 40,
        "rank 0 spends 40.0 ms longer between its steps in every step", 94,
    ),
    "logging on rank 0, not measured": (
        faulty(between=always(40, 0)), (), "persistent", 40,
        "rank 0 spends at least 40.0 ms longer between its steps in every step", 94,
    ),
    "logging on rank 0, named": (
        faulty(logging=always(40, 0)), ("between", "logging"), "logging", 40,
        "rank 0 writes logs for 40.0 ms in every step", 94,
    ),
    "host time on all": (
        faulty(between=always(40, 0, 1)), ("between",), "between", 40,
        r"ranks 0 and 1 spend 40.\S ms between their steps in every step", 94,
    ),
    "host time on all, not measured": (
        faulty(between=always(40, 0, 1)), (), "outside", 40,
        "time between them, where the program does not measure that", 94,
    ),
    "checkpoint, named": (
        faulty(checkpoint=every(500, 25, 0)), ("between", "checkpoint"), "checkpoint", 16.7,
        "rank 0 writes checkpoints for 500 ms in 2 of 60 steps, every 25th", 94,
    ),
    "checkpoint, not named": (
        faulty(checkpoint=every(500, 25, 0)), ("between",), "stalls", 16.7,
        "rank 0 spends 500 ms longer between its steps in 2 of 60 steps, every 25th", 94,
    ),
    "validation, named": (
        faulty(validation=every(800, 20, 0, 1)), ("between", "validation"), "validation", 40,
        "ranks 0 and 1 validate for 80. ms in 3 of 60 steps, every 20th", 94,
    ),
    "part of the run": (
        faulty(compute=within(30, 0, 50, 1)), ("between",), "persistent", 25,
        r"rank 1 computes \S+ ms longer in steps 1 to 50 of 60", 94,
    ),
    "stalls of the exchange": (
        faulty(transfer=every(300, 20, 0)), ("between",), "stalls", 15,
        "the exchange stalls for 300 ms in 3 of 60 steps, every 20th", 94,
    ),
}  # fmt: skip


Measured = tuple[ExperimentResults, Ledger, list[Finding]]


def measured(
    tmp_path: Path, program: Program, spans: tuple[str, ...] = ("between",), **more: Any
) -> Measured:
    study = planted_study(tmp_path, program, spans=spans, **more)
    return study, ledgers(study)[-1], find(study)


def clear(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.level == CONFIRMED and one.rule in CLEAR]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.slow
def test_a_planted_fault_is_named_with_rank_cause_and_size(tmp_path: Path, row: str) -> None:
    program, spans, term, size, sentence, reached = ROWS[row]
    _, ledger, found = measured(tmp_path, program, spans)
    terms = {name: part.loss or 0.0 for name, part in ledger.parts.items()}
    assert max(terms, key=lambda name: terms[name]) == term
    assert terms[term] == pytest.approx(size, abs=2)
    others = sum(abs(value) for name, value in terms.items() if name not in (term, "transfer"))
    assert others < 3, terms
    # Every term together is the measured step.
    whole = sum(part.value for part in ledger.parts.values())
    assert whole == pytest.approx(ledger.elapsed.value, rel=1e-6)
    (loss,) = [one for one in found if one.rule == "largest loss"]
    assert loss.level == CONFIRMED
    assert re.search(sentence, loss.text), loss.text
    told = re.search(r"would reach (\d+) % of the ideal", loss.text)
    assert told is not None
    assert float(told[1]) == pytest.approx(reached, abs=1)
    # One fact, one sentence; and none about a victim.
    assert clear(found) == [loss]
    assert "first epoch" not in loss.text
    # The page's example is this one.
    because = re.search("because (.*): without it", loss.text)
    (line,) = [
        one for one in (REPO / "docs" / "efficiency.md").read_text().splitlines()
        if one.startswith(f"| {row} |") and f"| {term} {ledger.parts[term].value:.1f} |" in one
    ]  # fmt: skip
    assert because is None or f"| {because[1]} |" in line


def test_a_straggler_of_a_program_that_waits_for_its_input_gains_nothing(tmp_path: Path) -> None:
    """Both are said: what the input alone costs, and what it costs with the straggler."""
    study, _, found = measured(tmp_path, ROWS["input-bound"][0])
    (point,) = point_causes(study)
    gains = {(one.cause, one.pattern): one.numbers["gain_ms"] for one in point.causes}
    assert gains["compute", "every"] == pytest.approx(0.6, abs=1)
    assert point.together.numbers["gain_ms"] == pytest.approx(35, abs=2)
    (loss,) = clear(found)
    assert re.search("and 95 % also without this: rank 1 computes", loss.text)
    assert card_of(study, found).next is not None


def one_point(study: ExperimentResults) -> PointCauses:
    (point,) = point_causes(study)
    return point


def test_two_stragglers_of_different_causes_hide_each_other(tmp_path: Path) -> None:
    """Rank 1 of 3 computes 30 ms longer, rank 2 reads 20 ms longer: the first costs 10."""
    program = faulty(compute=always(30, 1), input=always(20, 2))
    study, _, found = measured(tmp_path, program, ranks=3)
    point = one_point(study)
    gains = {(one.cause, tuple(one.ranks)): one.numbers["gain_ms"] for one in point.causes}
    assert gains["compute", (1,)] == pytest.approx(10, abs=1.5)
    assert gains["input", (2,)] == pytest.approx(0, abs=0.5)
    assert point.together.numbers["gain_ms"] == pytest.approx(30, abs=1.5)
    (loss,) = clear(found)
    assert "for a reason of its own" in loss.text
    assert "rank 1 computes" in loss.text and "rank 2 waits" in loss.text
    assert not [one for one in found if one.rule == "stragglers"]


@pytest.mark.parametrize("ranks", [4, 16])
def test_half_of_the_ranks_are_late_by_all_of_it(tmp_path: Path, ranks: int) -> None:
    """Against the latest of the others in each step it was 9.09 ms of 10 on 16 ranks."""
    late = range(ranks // 2, ranks)
    study = planted_study(tmp_path, faulty(compute=always(10, *late)), ranks=ranks)
    (cause,) = [one for one in one_point(study).causes if one.pattern == "every"]
    assert (cause.cause, cause.ranks) == ("compute", list(late))
    assert cause.numbers["longer_ms"] == pytest.approx(10, rel=0.05)


UNLIKE: dict[str, tuple[Program, str]] = {
    "sizes": (
        faulty(compute=both(always(50, 1), always(8, 2))),
        r"ranks 1 and 2 compute (49|50)\S* and (7|8)\S* ms longer in every step:",
    ),
    "parts": (
        faulty(compute=both(within(60, 0, 30, 1), within(20, 30, 60, 2))),
        r"one rank at a time computes 20\S* to (59|60)\S* ms longer \(rank 1 (59|60)\S* ms in "
        r"steps 1 to 30 and rank 2 (19|20)\S* ms in 31 to 60 of 60\):",
    ),
    "stalls": (
        faulty(compute=both(every(500, 10, 1), every(250, 20, 2))),
        r"ranks 1 and 2 compute (499|500) and (249|250) ms longer in 6 of 60 steps, every 10th "
        r"\(steps by rank 1: 6, 2: 3\):",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", UNLIKE)
def test_of_ranks_that_are_late_unlike_each_other_each_ones_share_is_said(
    tmp_path: Path, row: str
) -> None:
    program, sentence = UNLIKE[row]
    _, _, found = measured(tmp_path, program, ranks=4)
    (loss,) = clear(found)
    assert re.search(sentence, loss.text), loss.text


HIDDEN: dict[str, tuple[Program, tuple[str, ...], str]] = {
    "a straggler by validation": (
        faulty(validation=always(30, 0), compute=always(30, 1)), ("between", "validation"),
        r"because rank 1 computes .* in every step: without it the step would still reach 6\d % of "
        r"the ideal, and 94 % also without this: rank 0 validates",
    ),
    "logging by a checkpoint": (
        faulty(checkpoint=every(500, 10, 0), logging=every(400, 10, 1)),
        ("between", "checkpoint", "logging"),
        r"because rank 1 writes logs .*: without it the step would still reach 5\d % of the "
        r"ideal, and 94 % also without this: rank 0 writes checkpoints",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", HIDDEN)
def test_without_a_loss_that_another_cause_hides_nothing_would_be_gained(
    tmp_path: Path, row: str
) -> None:
    program, spans, sentence = HIDDEN[row]
    _, _, found = measured(tmp_path, program, spans, ranks=4)
    (loss,) = clear(found)
    assert re.search(sentence, loss.text), loss.text


def test_a_small_straggler_among_ranks_that_scatter_as_much_gains_what_the_replay_says(
    tmp_path: Path,
) -> None:
    """0.3 ms of 3: without it the next ranks are nearly as late, and the two sentences agree."""
    program = replace(
        Program(compute=2, exchange=0.1, read=0.01, inside=0.01), faults={"compute": always(0.3, 5)}
    )
    study, _, found = measured(tmp_path, program, ranks=8, steps=200, noise=Noise(0.05, 0.02))
    (loss,) = [one for one in found if one.rule == "largest loss"]
    assert re.search("because rank 5 computes 0.3\\S* ms longer in every step", loss.text)
    straggler = next(one for one in one_point(study).causes if one.cause == "compute")
    told = re.search(r"would reach (\d+) % of the ideal", loss.text)
    ledger = ledgers(study)[-1]
    assert ledger.ideal is not None and told is not None
    left = ledger.elapsed.value - straggler.numbers["gain_ms"]
    assert float(told[1]) == pytest.approx(100 * ledger.ideal.value / left, abs=1)


def test_of_five_causes_that_hide_each_other_all_are_named(tmp_path: Path) -> None:
    faults = {
        cause: always(30, rank + 1)
        for rank, cause in enumerate(("compute", "input", "between", "logging", "checkpoint"))
    }
    spans = ("between", "logging", "checkpoint")
    _, _, found = measured(tmp_path, faulty(**faults), spans, ranks=8)
    (loss,) = clear(found)
    for rank in range(1, 6):
        assert f"rank {rank} " in loss.text


@pytest.mark.parametrize("same_rank", [True, False])
def test_a_part_that_differs_between_runs_is_not_said_of_all(
    tmp_path: Path, same_rank: bool
) -> None:
    """20 of 60 steps, others in each run; or the same ones, on another rank in each."""
    runs = iter(range(100))

    def other(arrays: Arrays) -> None:
        run = next(runs) % 3
        rank, first = (1, 20 * run) if same_rank else (run, 0)
        extra = np.zeros((60, 4))
        extra[first : first + 20, rank] = 0.03
        arrays["span_compute"] += extra
        arrays["step_times"] += extra.max(axis=1, keepdims=True)
        arrays["span_communication"] += extra.max(axis=1, keepdims=True) - extra

    def stated(ranks: int, value: float) -> float:
        return value / (1 + 0.15 * (ranks > 1))  # 10 of 67 ms

    _, _, found = measured(tmp_path, Program(), ranks=4, changed=other, rate=stated)
    said = " ".join(one.text for one in found)
    if same_rank:
        assert "in a part of the 60 steps, another one in each run" in said
    else:
        assert re.search("A rank, another in each run, computes .* in a part of the 60", said)
        assert not [one for one in clear(found) if "ranks 0, 1 and 2" in one.text]


@pytest.mark.parametrize("late", [0, 2, 5])
def test_eight_ranks_in_any_order(tmp_path: Path, late: int) -> None:
    program = faulty(compute=always(30, late), between=every(400, 20, (late + 3) % 8))
    study, ledger, _ = measured(tmp_path, program, ranks=8)
    named = {(one.cause, one.pattern, tuple(one.ranks)) for one in one_point(study).causes}
    assert named == {("compute", "every", (late,)), ("between", "rare", ((late + 3) % 8,))}
    assert ledger.parts["persistent"].value == pytest.approx(30, abs=2)
    # The straggler hides as much of each stall.
    assert ledger.parts["stalls"].value == pytest.approx((400 - 30) * 3 / 60, abs=1.5)


def test_drift_of_all_ranks_is_no_imbalance_and_stalls_are_seen_in_it(tmp_path: Path) -> None:
    slower = both(lambda step, rank: 0.5 * step, every(300, 20, 1))
    study, ledger, _ = measured(tmp_path, faulty(compute=slower))
    (cause,) = one_point(study).causes
    assert (cause.cause, cause.pattern, list(cause.ranks)) == ("compute", "rare", [1])
    assert cause.numbers["longer_ms"] == pytest.approx(300, abs=5)
    assert ledger.parts["persistent"].value < 1
    whole = [
        row for row in study.rows("steps") if row["rank"] is None or row["rank"] != row["rank"]
    ]
    large = [row for row in whole if row["ranks"] == 2]
    assert all(row["stalls"] == 3 and row["stall_steps"] == "[20, 40, 60]" for row in large)
    assert all(row["drift"] == pytest.approx(20 / 70, abs=0.05) for row in large)


def test_another_slow_rank_in_each_run_is_not_clear(tmp_path: Path) -> None:
    slow = iter(range(100))

    def other(arrays: Arrays) -> None:
        rank = next(slow) % 4
        arrays["span_compute"][:, rank] += 0.03
        arrays["step_times"] += 0.03
        waits = [each for each in range(4) if each != rank]
        arrays["span_communication"][:, waits] += 0.03

    study, _, found = measured(tmp_path, Program(), ranks=4, changed=other)
    (cause,) = one_point(study).causes
    assert not cause.same_ranks
    assert not [one for one in clear(found) if one.rule == "causes"]
    assert any("another rank in each run" in one.text for one in found)


# --- what cannot be ---


def milliseconds(arrays: Arrays) -> None:
    for name in arrays:
        if name != "step_times":
            arrays[name] *= 1e3


def long_steps(arrays: Arrays) -> None:
    arrays["step_times"] *= 1e3


def overlapping(arrays: Arrays) -> None:
    arrays["span_input"] += 0.05


def disordered(arrays: Arrays) -> None:
    arrays["span_communication"][::5] -= 0.05


def all_milliseconds(arrays: Arrays) -> None:
    for name in arrays:
        arrays[name] *= 1e3


def of_many_runs(arrays: Arrays) -> None:
    for name in arrays:
        arrays[name] = np.concatenate([arrays[name]] * 60)


def runs_fast(factor: float, rank: int = 1) -> Any:
    def change(arrays: Arrays) -> None:
        for values in arrays.values():
            values[:, rank] *= factor

    return change


def long_checkpoints(arrays: Arrays) -> None:
    arrays["span_checkpoint"] = arrays["span_between"] + 0.02


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (milliseconds, "about 1,000 times its step_times: the spans look like milliseconds"),
        (long_steps, "step_times look like milliseconds"),
        (overlapping, "are longer than the step in 60 of 60 steps"),
        (disordered, "span_communication is negative in 12 of 60 steps"),
        (long_checkpoints, "span_checkpoint are longer than span_between in 60 of 60 steps"),
        (all_milliseconds, "times the seconds that the whole run took: they look like millisecond"),
        (of_many_runs, "they have another unit, overlap, or are of several runs"),
        (runs_fast(1.25), "rank 1 counted about 25 % more time than the other one"),
        (runs_fast(1.05), "rank 1 counted about 5 % more time than the other one"),
        (runs_fast(1.02, 0), "rank 0 counted about 2 % more time than the other one"),
    ],
)
def test_spans_that_cannot_be_are_refused_with_the_likely_cause(
    tmp_path: Path, change: Any, words: str
) -> None:
    study, _, found = measured(tmp_path, Program(), changed=change)
    (warning,) = [one for one in found if one.rule == "warnings"]
    assert words in warning.text
    assert not point_causes(study)
    assert not [row for row in study.rows("efficiency") if row["ranks"] == 2]
    assert not clear(found)


def test_a_slow_clock_is_named_among_many_and_noise_of_stamps_is_none(tmp_path: Path) -> None:
    program = faulty(compute=both(always(30, 2), every(400, 10, 1)), between=every(300, 9, 3))
    found = find(planted_study(tmp_path / "slow", program, ranks=8, changed=runs_fast(0.9, 5)))
    (warning,) = [one for one in found if one.rule == "warnings"]
    assert "rank 5 counted about 10 % less time than most others" in warning.text
    assert not clear(found)

    def late_stamps(arrays: Arrays) -> None:
        """A rank notices the end of some steps late, and begins the next one as much later."""
        late = 0.03 * (np.random.default_rng(7).random((60, 8)) < 0.3)
        arrays["step_times"] += late
        arrays["span_communication"] += late
        arrays["step_times"][1:] -= late[:-1]
        arrays["span_compute"][1:] -= late[:-1]

    study, _, found = measured(tmp_path / "noise", program, ranks=8, changed=late_stamps)
    assert point_causes(study)
    assert not [one for one in found if one.rule == "warnings"]


OUTSIDE: dict[str, tuple[float, float, str | None]] = {
    # Rates of one and of two ranks over those of their steps, and what the sentence says.
    "a long pause": (1, 0.4, "by its rate of samples, and 66.* ms by its step times: no part is"),
    "a very long pause": (1, 0.01, r"by its rate of samples, and 0.066\d* s by its step times: no"),
    "faster than its steps": (1, 1.3, None),
    "slow at one rank, too": (0.35, 0.25, "by its rate of samples, and 66.* ms by its step times"),
    "a pause": (1, 0.8, "the largest part is what is outside of the accounted steps.*, 16"),
    "other samples": (0.1, 0.1, "the largest part is transfer"),
}


@pytest.mark.parametrize("row", OUTSIDE)
def test_a_rate_that_contradicts_the_steps_is_shown_beside_them(tmp_path: Path, row: str) -> None:
    small, large, words = OUTSIDE[row]

    def stated(ranks: int, value: float) -> float:
        return value * (small if ranks == 1 else large)

    _, ledger, found = measured(tmp_path, Program(), rate=stated)
    losses = [one for one in found if one.rule == "largest loss"]
    if words is None:
        assert not losses
        return
    (loss,) = losses
    assert re.search(words, loss.text), loss.text
    assert (loss.level == CONFIRMED) == (row in ("a pause", "other samples"))
    assert ledger.contradicts == (loss.level != CONFIRMED)
    if row != "other samples":  # one efficiency: the ledger's is the verdict's
        assert ledger.ideal is not None
        told = 0.93 * large / small
        assert ledger.ideal.value / ledger.elapsed.value == pytest.approx(told, rel=0.02)


def test_steps_that_are_longer_than_their_samples_leave_no_part_clear(tmp_path: Path) -> None:
    """The clocks of both ranks are fast, and one rank is late."""

    def fast(arrays: Arrays) -> None:
        for name in arrays:
            arrays[name] *= 1.25

    _, _, found = measured(tmp_path, faulty(compute=always(30, 1)), changed=fast)
    (loss,) = [one for one in found if one.rule == "largest loss"]
    assert re.search("no part is named, because steps cannot take longer than the", loss.text)
    assert loss.level != CONFIRMED
    assert not [one for one in found if one.rule == "causes" and "of the ideal" in one.text]


def test_stamps_out_of_order_are_refused_as_the_program_says(tmp_path: Path) -> None:
    notes = {"spans": {"out_of_order": 7}}
    found = find(planted_study(tmp_path, Program(), notes=notes))
    (warning,) = [one for one in found if one.rule == "warnings"]
    assert "out of order in 7 steps" in warning.text


def test_operations_with_side_effects_leave_no_cause_clear(tmp_path: Path) -> None:
    notes = {"spans": {"side_effects": ["PrintV2"]}}
    program = ROWS["slow reader"][0]
    _, _, found = measured(tmp_path, program, notes=notes)
    (cause,) = [one for one in found if one.rule == "causes"]
    assert cause.level != CONFIRMED
    assert "PrintV2 in the step may have shifted its time stamps" in cause.text


def test_one_repeat_confirms_no_cause(tmp_path: Path) -> None:
    _, _, found = measured(tmp_path, ROWS["slow reader"][0], repeats=1)
    assert not clear(found)
    (cause,) = [one for one in found if one.rule == "causes"]
    assert "one run, not confirmed" in cause.text


@pytest.mark.parametrize("count", [8, 30, 60])
def test_of_ranks_that_do_not_meet_or_whose_clocks_disagree_none_is_late(
    tmp_path: Path, count: int
) -> None:
    """Steps of one rank are longer, but nobody waits for it, and nothing is kept between them."""

    def alone(arrays: Arrays) -> None:
        work = arrays["span_compute"]
        arrays["span_communication"][:] = 0.001
        arrays["step_times"] = work + arrays["span_input"] + 0.0015

    program = replace(Program(), faults={"compute": always(30, 1)})
    study, _, found = measured(tmp_path, program, spans=(), changed=alone, steps=count)
    assert not point_causes(study)
    assert not clear(found)
    (warning,) = [one for one in found if one.rule == "warnings"]
    assert re.search("rank 1 counted about 4. % more time .* mode.synchronous: false", warning.text)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("both ranks late", "rank 1 computes .* in every step and rank 0 waits .* for input in"),
        ("slow reader", "rank 1 waits .* longer for input in every step"),
        ("logging on rank 0", "rank 0 spends .* longer between its steps in every step"),
        ("alternating", "another rank in each step .* computes .* longer"),
    ],
)
def test_a_machine_that_others_disturb_changes_no_name(
    tmp_path: Path, row: str, words: str
) -> None:
    """In one of seven steps something of a rank takes 3 ms longer, on all ranks at times."""
    program, _, term, size, _, _ = ROWS[row]
    _, ledger, found = measured(tmp_path, program, noise=Noise(1, 0.5, spikes=0.15))
    assert ledger.parts[term].value == pytest.approx(size, abs=3)
    (loss,) = [one for one in found if one.rule == "largest loss"]
    assert re.search(words, loss.text), loss.text


def test_asynchronous_training_has_no_causes(tmp_path: Path) -> None:
    notes = {"mode": {"synchronous": False}}
    study, _, found = measured(tmp_path, ROWS["slow reader"][0], notes=notes)
    assert not point_causes(study)
    assert not [one for one in found if one.rule == "causes"]
    assert study.rows("steps")
