"""Host activities that some runs name and others do not: what is then said of them."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.acceptance.faults import Arrays, Program, always, every
from tests.unit.findings.test_planted_steps import clear, faulty, measured
from tests.unit.findings.test_planted_truth import ALL_FOUR, said_of_loss


def unnamed(term: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        del arrays[f"span_{term}"]

    return change


# A host activity that one rank alone does not print, and what the largest loss is then.
UNPRINTED: dict[str, tuple[Program, str, str]] = {
    "a checkpoint": (
        faulty(checkpoint=every(300, 10, 0)), "checkpoint",
        "largest loss is checkpoints, (29|30)",
    ),
    "validation beside a straggler": (
        faulty(validation=every(800, 20, *ALL_FOUR), compute=always(8, 3)), "validation",
        "largest loss is validation, (39|40)",
    ),
    "logging": (faulty(logging=always(30, 0)), "logging", "largest loss is logging, (28|29|30)"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNPRINTED)
def test_an_activity_that_the_reference_does_not_print_is_a_loss(tmp_path: Path, name: str) -> None:
    program, term, sentence = UNPRINTED[name]
    _, ledger, found = measured(tmp_path, program, ("between", term), ranks=4, alone=unnamed(term))
    part = ledger.parts[term]
    assert part.loss == pytest.approx(part.value)
    (loss,) = [one for one in clear(found) if one.rule == "largest loss"]
    assert re.search(sentence, loss.sentence), loss.sentence


def test_an_activity_that_the_reference_may_have_without_a_name_is_no_largest_loss(
    tmp_path: Path,
) -> None:
    """300 ms every 10th step everywhere, named on 4 ranks only, and a transfer of 4 ms."""
    program = faulty(checkpoint=every(300, 10, *ALL_FOUR))

    def same(arrays: Arrays) -> None:
        del arrays["span_checkpoint"]
        arrays["span_between"][9::10] += 0.3

    _, ledger, found = measured(
        tmp_path,
        replace(program, exchange=8),
        ("between", "checkpoint"),
        ranks=4,
        alone=same,
        rate=lambda ranks, value: value / (1 + 30 / 62.6 * (ranks == 1)),
    )
    assert ledger.parts["checkpoint"].loss is None
    text = said_of_loss(found)
    assert "no loss is named: checkpoints takes 30" in text
    assert not [one for one in clear(found) if one.rule == "largest loss"]
    assert not [one for one in found if re.search(r"reach 1[0-9]\d % of the ideal", one.sentence)]
    assert [one for one in found if "ms shorter, below the ideal (the reference" in one.sentence]


def test_a_checkpoint_that_the_reference_has_too_is_taken_from_both(tmp_path: Path) -> None:
    """30 ms a step everywhere, and 20 of computation on two ranks only: 72 % of 62.6 ms are
    reached, not 106 % of 92.6."""

    def same(arrays: Arrays) -> None:
        for name in ("span_checkpoint", "span_between"):
            arrays[name][9::10] += 0.3

    program = faulty(checkpoint=every(300, 10, 0, 1), compute=always(20, 0, 1))
    _, _, found = measured(
        tmp_path,
        program,
        ("between", "checkpoint"),
        alone=same,
        rate=lambda ranks, value: value / (1 + 30 / 62.6 * (ranks == 1)),
    )
    (text,) = [one.sentence for one in found if "rite checkpoints" in one.sentence]
    assert re.search(r"shorter and reach 7[123] % of the ideal, without it there too \(", text), (
        text
    )


def test_logs_that_the_reference_may_write_without_a_name_make_nobody_faster(
    tmp_path: Path,
) -> None:
    def same(arrays: Arrays) -> None:
        del arrays["span_logging"]
        arrays["span_between"] += 0.02

    _, _, found = measured(
        tmp_path,
        faulty(logging=always(20, *ALL_FOUR)),
        ("between", "logging"),
        ranks=4,
        alone=same,
        rate=lambda ranks, value: value / (1 + 20 / 62.6 * (ranks == 1)),
    )
    assert "no loss is named: logging takes 20" in said_of_loss(found)
    assert not [one.sentence for one in found if "faster than at the reference" in one.sentence]
