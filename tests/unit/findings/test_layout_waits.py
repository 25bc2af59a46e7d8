"""Waits of ranks that share layers, shards or a pipeline are named as what they are."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scalesweep.findings.base import CLEAR, Finding
from tests.acceptance.faults import Arrays, Program, always
from tests.unit.findings.test_planted_steps import Measured, faulty, measured

GRADIENTS, LAYERS, STAGES = "span_data_parallel", "span_tensor_parallel", "span_pipeline_wait"
SHARDS = {"exchanged": "parameters and gradients"}


def with_parts(arrays: Arrays, waits: str = GRADIENTS) -> None:
    """Add computation in three parts, and all that ranks wait for as of one kind."""
    for name, share in (("forward", 0.25), ("backward", 0.7), ("optimizer", 0.05)):
        arrays[f"span_{name}"] = share * arrays["span_compute"]
    arrays[waits] = arrays["span_communication"].copy()


def shared(folder: Path, program: Program, waits: str, notes: Any, **more: Any) -> Measured:
    return measured(
        folder, program, changed=partial(with_parts, waits=waits), alone=with_parts,
        notes={"spans": notes}, **more,
    )  # fmt: skip


def loss_of(findings: list[Finding]) -> Finding:
    (loss,) = (each for each in findings if each.rule == "largest loss")
    return loss


@pytest.mark.parametrize(
    ("waits", "notes", "term", "words"),
    [
        (GRADIENTS, {}, "transfer", "exposed communication, 33"),
        (GRADIENTS, SHARDS, "sharded", "exchange of shards, 33"),
        (LAYERS, {}, "tensor", "tensor-parallel exchange, 34"),
        (STAGES, {"stages": 2}, "pipeline", "the largest loss is pipeline wait"),
    ],
)
def test_a_wait_is_named_as_what_it_is(
    tmp_path: Path, waits: str, notes: Any, term: str, words: str
) -> None:
    _, ledger, findings = shared(tmp_path, faulty(transfer=always(30, 0)), waits, notes)
    loss = loss_of(findings)
    assert loss.state == CLEAR and loss.evidence["term"] == term
    assert words in loss.sentence and ledger.parts[term].more == pytest.approx(34, abs=2)
    # All terms are the measured step.
    whole = sum(part.ms for part in ledger.parts.values())
    assert whole == pytest.approx(ledger.elapsed.ms, rel=1e-6)
