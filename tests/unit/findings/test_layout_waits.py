"""Waits of ranks that share layers, shards or a pipeline are named as what they are."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.step_account import TERMS, account_of, span_problem
from scalesweep.aspects.steps.breakdown import EfficiencyRow
from scalesweep.aspects.steps.efficiency import PART
from scalesweep.findings.base import CLEAR, Finding
from tests.acceptance.faults import Arrays, Program, always, planted_run
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
    study, ledger, findings = shared(tmp_path, faulty(transfer=always(30, 0)), waits, notes)
    loss = loss_of(findings)
    assert loss.state == CLEAR and loss.evidence["term"] == term
    assert words in loss.sentence and ledger.parts[term].more == pytest.approx(34, abs=2)
    # All terms are the measured step, and the parts of computation are that.
    whole = sum(part.ms for part in ledger.parts.values())
    assert whole == pytest.approx(ledger.elapsed.ms, rel=1e-6)
    rows = [row for row in study.of(EfficiencyRow) if row.kind == PART and row.point["ranks"] > 1]
    assert [row.term for row in rows] == ["forward", "backward", "optimizer"]
    computing = sum(ledger.parts[name].ms for name in ("at_reference", "slower"))
    assert sum(row.value.value for row in rows) == pytest.approx(computing, rel=0.01)


def test_parts_belong_to_their_whole() -> None:
    arrays = planted_run(Program(), 4)
    with_parts(arrays, STAGES)
    arrays[LAYERS] = 0.25 * arrays[STAGES]
    arrays[STAGES] = 0.75 * arrays[STAGES]
    account = account_of(arrays, {}, 4)
    assert account is not None
    assert account.terms["transfer"] == 0.0 and "sharded" not in account.terms
    assert account.terms["pipeline"] == pytest.approx(3 * account.terms["tensor"])
    assert account.terms["compute"] == pytest.approx(sum(account.parts.values()))
    assert set(account.parts) == {"forward", "backward", "optimizer"}
    terms = [term for name in TERMS if (term := account.term(name)) is not None]
    assert sum(terms) == pytest.approx(account.elapsed)
    for name, whole in (("span_backward", "span_compute"), (STAGES, "span_communication")):
        less = {**arrays, name: 0.3 * arrays[name]}
        problem = span_problem(less, {}, 4)
        assert problem is not None and f"do not add up to {whole} in 60 of 60 steps" in problem
        assert account_of(less, {}, 4) is None
    bad = {**arrays, LAYERS: arrays[LAYERS][:5]}
    assert f"{LAYERS} has the shape (5, 4)" in str(span_problem(bad, {}, 4))
    assert np.isfinite(account.elapsed)
