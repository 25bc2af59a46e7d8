"""Faults planted in the steps of a run: terms, ranks, causes and what would be without them.

Each row of the examples in docs/reference/step_causes.md, through records, tables and findings.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.aspects.breakdown.ledgers import Ledger, ledgers
from scalesweep.aspects.find import find
from scalesweep.aspects.steps.causes import PointCauses, point_causes
from scalesweep.core.paths import REPO
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, Finding
from tests.acceptance.faults import (
    Arrays,
    Fault,
    Noise,
    Program,
    always,
    both,
    every,
    in_turn,
    on_any,
    within,
)
from tests.fakes.planted_steps import planted_study

RULES = ("largest loss", "causes", "stragglers")


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
        r"one rank at a time computes 500 ms longer in 12 of 60 steps, every 5th \(5 on rank 0 "
        r"and 7 on rank 1\)", 94,
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
        "time outside of the steps", 94,
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
    return [one for one in found if one.state == CLEAR and one.rule in RULES]


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
    assert loss.state == CLEAR
    assert re.search(sentence, loss.sentence), loss.sentence
    told = re.search(r"would reach (\d+) % of the ideal", loss.sentence)
    assert told is not None
    assert float(told[1]) == pytest.approx(reached, abs=1)
    # One fact, one sentence; and none about a victim.
    assert clear(found) == [loss]
    assert "first epoch" not in loss.sentence
    # The page's example is this one.
    because = re.search("because (.*): without it", loss.sentence)
    (line,) = [
        one for one in (REPO / "docs" / "reference" / "step_causes.md").read_text().splitlines()
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
    assert re.search("and 95 % also without this: rank 1 computes", loss.sentence)


def one_point(study: ExperimentResults) -> PointCauses:
    (point,) = point_causes(study)
    return point


@pytest.mark.parametrize("ranks", [4, 16])
def test_half_of_the_ranks_are_late_by_all_of_it(tmp_path: Path, ranks: int) -> None:
    """Against the latest of the others in each step it was 9.09 ms of 10 on 16 ranks."""
    late = range(ranks // 2, ranks)
    study = planted_study(tmp_path, faulty(compute=always(10, *late)), ranks=ranks)
    (cause,) = [one for one in one_point(study).causes if one.pattern == "every"]
    assert (cause.cause, cause.ranks) == ("compute", list(late))
    assert cause.numbers["longer_ms"] == pytest.approx(10, rel=0.05)


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
    assert re.search(sentence, loss.sentence), loss.sentence


def test_a_small_straggler_among_ranks_that_scatter_as_much_gains_what_the_replay_says(
    tmp_path: Path,
) -> None:
    """0.3 ms of 3: without it the next ranks are nearly as late, and the two sentences agree."""
    program = replace(
        Program(compute=2, exchange=0.1, read=0.01, inside=0.01), faults={"compute": always(0.3, 5)}
    )
    study, _, found = measured(tmp_path, program, ranks=8, steps=200, noise=Noise(0.05, 0.02))
    (loss,) = [one for one in found if one.rule == "largest loss"]
    assert re.search("because rank 5 computes 0.3\\S* ms longer in every step", loss.sentence)
    straggler = next(one for one in one_point(study).causes if one.cause == "compute")
    told = re.search(r"would reach (\d+) % of the ideal", loss.sentence)
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
        assert f"rank {rank} " in loss.sentence


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
    said = " ".join(one.sentence for one in found)
    if same_rank:
        assert "in a part of the 60 steps, another one in each run" in said
    else:
        assert re.search("A rank, another in each run, computes .* in a part of the 60", said)
        assert not [one for one in clear(found) if "ranks 0, 1 and 2" in one.sentence]


@pytest.mark.parametrize("ranks", [2, 4])
def test_logging_that_is_not_measured_is_seen_beside_stalls_of_another(
    tmp_path: Path, ranks: int
) -> None:
    """In the steps where rank 1 stalls, it waits for no one, and rank 0 waits for it."""
    program = faulty(compute=every(300, 10, 1), between=always(40, 0))
    study, _, found = measured(tmp_path, program, spans=(), ranks=ranks)
    assert not [one for one in found if one.rule == "warnings"]
    named = {(one.cause, one.pattern, tuple(one.ranks)) for one in one_point(study).causes}
    assert named == {("between", "every", (0,)), ("compute", "rare", (1,))}


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

    def stated(ranks: int, value: float) -> float:
        return value / (1 + 30 / 67 * (ranks > 1))

    study, _, found = measured(tmp_path, Program(), ranks=4, changed=other, rate=stated)
    (cause,) = one_point(study).causes
    assert not cause.same_ranks
    assert not [one for one in clear(found) if one.rule == "causes"]
    assert any("another rank in each run" in one.sentence for one in found)


def at_step(*places: int) -> Any:
    """3 s at one step of rank 1, in a step of its own of each run (from 1)."""
    runs = iter(range(100))

    def change(arrays: Arrays) -> None:
        step = places[next(runs) % len(places)] - 1
        arrays["step_times"][step] += 3
        arrays["span_compute"][step, 1] += 3
        others = [rank for rank in range(arrays["step_times"].shape[1]) if rank != 1]
        arrays["span_communication"][step, others] += 3

    return change


SINGLE: dict[str, tuple[tuple[int, ...], bool, str]] = {
    "the same": (
        (31,),
        True,
        r"because rank 1 computes (2,99\d|3,00\d) ms longer in step 31 of 60",
    ),
    "the first": ((1,), True, "longer in the first step of 60, as in a warm-up"),
    "others": ((31, 12, 50), False, "not confirmed: 3 in all runs, neither regular nor in the"),
    "one of three": ((31, 31, 32), False, "not confirmed: 3 in all runs, neither regular"),
}


@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("row", SINGLE)
def test_a_single_stall_is_clear_only_in_the_same_step_of_each_run(
    tmp_path: Path, row: str, ranks: int
) -> None:
    places, sure, words = SINGLE[row]

    def stated(count: int, value: float) -> float:
        return value if count == 1 else value / (1 + 50 / 67)  # 3 s of 60 steps

    _, ledger, found = measured(
        tmp_path, Program(), ranks=ranks, changed=at_step(*places), rate=stated
    )
    assert ledger.parts["stalls"].value == pytest.approx(50, abs=1)
    (loss,) = [one for one in found if one.rule == "largest loss"]
    assert (loss.state == CLEAR) == sure, loss.sentence
    assert re.search(words, loss.sentence), loss.sentence
    causes = [one for one in found if one.rule == "causes"]
    assert not causes if sure else re.search(words, causes[0].sentence)


def test_operations_with_side_effects_leave_no_cause_clear(tmp_path: Path) -> None:
    notes = {"spans": {"side_effects": ["PrintV2"]}}
    program = ROWS["slow reader"][0]
    _, _, found = measured(tmp_path, program, notes=notes)
    (cause,) = [one for one in found if one.rule == "causes"]
    assert cause.state != CLEAR
    assert "PrintV2 in the step may have shifted its time stamps" in cause.sentence


def test_one_repeat_confirms_no_cause(tmp_path: Path) -> None:
    _, _, found = measured(tmp_path, ROWS["slow reader"][0], repeats=1)
    assert not clear(found)
    (cause,) = [one for one in found if one.rule == "causes"]
    assert "one run, not confirmed" in cause.sentence


def test_asynchronous_training_has_no_causes(tmp_path: Path) -> None:
    notes = {"mode": {"synchronous": False}}
    study, _, found = measured(tmp_path, ROWS["slow reader"][0], notes=notes)
    assert not point_causes(study)
    assert not [one for one in found if one.rule == "causes"]
    assert study.rows("steps")
