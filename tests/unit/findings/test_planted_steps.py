"""Faults planted in the steps of a run: terms, ranks, causes and what would be without them."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scalesweep.aspects.find import find
from scalesweep.aspects.steps.ledgers import Ledger, ledgers
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, Finding
from tests.acceptance.faults import Arrays, Fault, Program, always, within
from tests.fakes.planted_steps import planted_study

RULES = ("largest loss", "causes", "stragglers")


def faulty(**faults: Fault) -> Program:
    return Program(faults=faults)


Measured = tuple[ExperimentResults, Ledger, list[Finding]]


def measured(
    tmp_path: Path, program: Program, spans: tuple[str, ...] = ("between",), **more: Any
) -> Measured:
    study = planted_study(tmp_path, program, spans=spans, **more)
    return study, ledgers(study)[-1], find(study)


def clear(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.state == CLEAR and one.rule in RULES]


def loss_of(found: list[Finding]) -> Finding:
    (loss,) = [one for one in found if one.rule == "largest loss"]
    return loss


def check_sum(ledger: Ledger) -> None:
    """Every term together is the measured step."""
    whole = sum(part.ms for part in ledger.parts.values())
    assert whole == pytest.approx(ledger.elapsed.ms, rel=1e-6)


# Name -> program, spans kept, the largest term and its ms, what the clear cause says.
ROWS: dict[str, tuple[Program, tuple[str, ...], str, float, str]] = {
    "logging on rank 0, named": (
        faulty(logging=always(40, 0)), ("between", "logging"), "logging", 40,
        r"rank 0: logging \+(39|40)\S* .* in every step",
    ),
    "host time on all, not measured": (faulty(between=always(40, 0, 1)), (), "outside", 40, ""),
    "part of the run": (
        faulty(compute=within(30, 0, 50, 1)), ("between",), "persistent", 25, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.slow
def test_a_planted_fault_is_named_with_rank_cause_and_size(tmp_path: Path, row: str) -> None:
    program, spans, term, size, sentence = ROWS[row]
    study, ledger, found = measured(tmp_path, program, spans)
    terms = {name: part.more or 0.0 for name, part in ledger.parts.items()}
    assert max(terms, key=lambda name: terms[name]) == term
    assert terms[term] == pytest.approx(size, abs=2)
    others = sum(abs(value) for name, value in terms.items() if name not in (term, "transfer"))
    assert others < 3, terms
    check_sum(ledger)
    assert loss_of(found).state == CLEAR
    causes = [one.sentence for one in clear(found) if one.rule == "causes"]
    assert any(re.search(sentence, text) for text in causes) if sentence else not causes, causes
    assert all(len(text.split()) <= 25 for text in causes)
    # What no cause explains is always said.
    (together,) = [each for each in study.of(CauseRow) if each.cause == "all"]
    assert together.unexplained_ms.value == pytest.approx(26 if "part" in row else 1, abs=1)


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


@pytest.mark.parametrize(("places", "sure"), [((31,), True), ((31, 12, 50), False)])
def test_a_single_stall_is_clear_only_in_the_same_step_of_each_run(
    tmp_path: Path, places: tuple[int, ...], sure: bool
) -> None:
    _, ledger, found = measured(
        tmp_path,
        Program(),
        ranks=4,
        changed=at_step(*places),
        rate=lambda ranks, value: value / (1 + 50 / 67 * (ranks > 1)),
    )
    assert ledger.parts["stalls"].ms == pytest.approx(50, abs=1)
    (cause,) = [one for one in found if one.rule == "causes"]
    assert (cause.state == CLEAR) == sure
    assert ("may be noise" in cause.reason) != sure


def test_a_wait_for_input_that_all_ranks_share_is_said(tmp_path: Path) -> None:
    for ms, said in ((40, ["At 2 ranks, 39 % of a step is a wait for input."]), (4, [])):
        _, _, found = measured(tmp_path / str(ms), faulty(input=always(ms, 0, 1)))
        assert [one.sentence for one in found if one.rule == "input wait"] == said


@pytest.mark.parametrize(
    ("more", "words"),
    [({"repeats": 1}, "one run"), ({"notes": {"mode": {"synchronous": False}}}, "")],
)
def test_a_cause_is_open_for_a_reason(tmp_path: Path, more: Any, words: str) -> None:
    study, _, found = measured(tmp_path, faulty(input=always(40, 1)), **more)
    causes = [one for one in found if one.rule == "causes"]
    assert all(one.state != CLEAR and words in one.reason for one in causes)
    assert bool(causes) == bool(words) and study.rows("steps")


def test_runs_that_are_whole_are_used_and_the_others_are_named(tmp_path: Path) -> None:
    runs = iter(range(100))

    def half(arrays: Arrays) -> None:
        if next(runs) % 2:
            del arrays["span_input"]

    study, _, found = measured(tmp_path, faulty(compute=always(30, 1)), repeats=6, changed=half)
    assert any("span_input is missing" in one.reason for one in found if one.rule == "warnings")
    cause = study.of(CauseRow)[0]
    assert (cause.cause, cause.step_ranks, cause.repeats) == ("compute", "1", 3)
    assert clear(found)


GRADIENTS, LAYERS, STAGES = "span_data_parallel", "span_tensor_parallel", "span_pipeline_wait"
SHARDS = {"exchanged": "parameters and gradients"}


def with_parts(arrays: Arrays, waits: str = GRADIENTS) -> None:
    """Add computation in three parts, and all that ranks wait for as of one kind."""
    for name, share in (("forward", 0.25), ("backward", 0.7), ("optimizer", 0.05)):
        arrays[f"span_{name}"] = share * arrays["span_compute"]
    arrays[waits] = arrays["span_communication"].copy()


@pytest.mark.parametrize(
    ("waits", "notes", "term", "words"),
    [
        (GRADIENTS, {}, "transfer", "exposed communication, 33"),
        (GRADIENTS, SHARDS, "sharded", "exchange of shards, 33"),
        (LAYERS, {}, "tensor", "tensor-parallel exchange, 34"),
        (STAGES, {"stages": 2}, "pipeline", "the largest loss is pipeline wait"),
    ],
)
def test_a_wait_of_ranks_that_share_layers_shards_or_a_pipeline_is_named_as_what_it_is(
    tmp_path: Path, waits: str, notes: Any, term: str, words: str
) -> None:
    _, ledger, found = measured(
        tmp_path, faulty(transfer=always(30, 0)), alone=with_parts,
        changed=partial(with_parts, waits=waits), notes={"spans": notes},
    )  # fmt: skip
    loss = loss_of(found)
    assert loss.state == CLEAR and loss.evidence["term"] == term
    assert words in loss.sentence and ledger.parts[term].more == pytest.approx(34, abs=2)
    check_sum(ledger)
