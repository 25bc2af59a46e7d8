"""Times of steps that cannot be: refused with the likely cause, and nothing is clear on them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.step_account import account_of
from scalesweep.aspects.find import find
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.findings.base import CLEAR
from tests.acceptance.faults import Arrays, Noise, Program, always, planted_run
from tests.fakes.planted_steps import planted_study
from tests.unit.findings.test_planted_steps import clear, measured


def scaled(factor: float, *names: str, rank: Any = slice(None), first: int = 0) -> Any:
    """Multiply these arrays, or all, on a rank, or all, from a step on."""

    def change(arrays: Arrays) -> None:
        for name in names or arrays:
            arrays[name][first:, rank] *= factor

    return change


SPANS = [f"span_{name}" for name in ("input", "compute", "communication", "between")]


def overlapping(arrays: Arrays) -> None:
    arrays["span_input"] += 0.05


def long_checkpoints(arrays: Arrays) -> None:
    arrays["span_checkpoint"] = arrays["span_between"] + 0.02


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (scaled(1e3, *SPANS), "about 1,000 times step_times .*: the spans look like milliseconds"),
        (scaled(1e3, "step_times"), "they are milliseconds, overlap, or are of several runs"),
        (overlapping, "are longer than the step in 60 of 60 steps"),
        (long_checkpoints, "span_checkpoint are longer than span_between in 60 of 60 steps"),
        (scaled(1e3), "times the seconds that the run timed: they are milliseconds"),
        (scaled(1.25, rank=1), "rank 1 counted about 25 % more time than the others"),
        (scaled(1.1, rank=1, first=30), "rank 1 counted about 5 % more time than the others"),
    ],
)
def test_impossible_spans_are_refused_by_cause(tmp_path: Path, change: Any, words: str) -> None:
    study, _, found = measured(tmp_path, Program(), changed=change)
    (warning,) = [one for one in found if one.rule == "warnings"]
    assert re.search(words, warning.reason), warning.reason
    assert not study.of(CauseRow)
    assert not [row for row in study.rows("efficiency") if row["ranks"] == 2]
    assert not clear(found)


@pytest.mark.parametrize(("ms", "refused"), [(5.0, False), (20.0, True)])
def test_stamps_that_other_work_holds_back_are_no_clock_that_runs_wrong(
    tmp_path: Path, ms: float, refused: bool
) -> None:
    """In 60 steps of 4 ms a few ms are more than 1 %, and no more than a scheduler's slice."""

    def held_back(arrays: Arrays) -> None:
        arrays["step_times"][30, 1] += ms / 1e3

    quiet = Noise(step=0.05, run=0.01)
    short = Program(compute=3.0, read=0.1, exchange=0.5, inside=0.1)
    study, _, found = measured(tmp_path, short, changed=held_back, noise=quiet)
    warnings = [one.reason for one in found if one.rule == "warnings"]
    assert any("counted about" in text for text in warnings) == refused
    assert bool([row for row in study.rows("efficiency") if row["ranks"] == 2]) != refused


@pytest.mark.parametrize(
    ("small", "large", "words", "clearly"),
    # Rates of one and of two ranks over those of their steps, and what the sentence says.
    [
        (1, 0.4, "by its rate of samples, 66.* ms by its step times", False),
        (1, 1.3, "", False),  # faster than its steps
        (1, 0.8, "the largest loss is time outside of steps, 1", True),  # a pause
        (0.1, 0.1, "the largest loss is exposed communication", True),  # other samples
    ],
)
def test_a_rate_that_contradicts_the_steps_is_shown_beside_them(
    tmp_path: Path, small: float, large: float, words: str, clearly: bool
) -> None:
    def stated(ranks: int, value: float) -> float:
        return value * (small if ranks == 1 else large)

    _, ledger, found = measured(tmp_path, Program(), rate=stated)
    losses = [one for one in found if one.rule == "largest loss"]
    assert len(losses) == bool(words)
    for loss in losses:
        assert re.search(words, loss.sentence), loss.sentence
        assert (loss.state == CLEAR) == clearly != ledger.contradicts
        if small == 1:  # one efficiency: the ledger's is the verdict's
            share = ledger.ideal.ms / ledger.elapsed.ms
            assert share == pytest.approx(0.93 * large, rel=0.02)


def test_stamps_out_of_order_are_refused_as_the_program_says(tmp_path: Path) -> None:
    notes = {"spans": {"out_of_order": 7}}
    found = find(planted_study(tmp_path, Program(), notes=notes))
    (warning,) = [one for one in found if one.rule == "warnings"]
    assert "out of order in 7 steps" in warning.reason


@pytest.mark.parametrize("count", [8, 30, 60])
def test_of_ranks_that_never_meet_or_disagree_none_is_late(tmp_path: Path, count: int) -> None:
    """Steps of one rank are longer, but nobody waits for it, and nothing is kept between them."""

    def alone(arrays: Arrays) -> None:
        work = arrays["span_compute"]
        arrays["span_communication"][:] = 0.001
        arrays["step_times"] = work + arrays["span_input"] + 0.0015

    program = Program(faults={"compute": always(30, 1)})
    study, _, found = measured(tmp_path, program, spans=(), changed=alone, steps=count)
    assert not study.of(CauseRow)
    assert not clear(found)
    (warning,) = [one for one in found if one.rule == "warnings"]
    assert re.search(
        "rank 1 counted about 4. % more time .* mode.synchronous: false", warning.reason
    )


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
