"""Where the time of the first epoch goes: planted losses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.step_account import account_of, first_epoch_account
from scalesweep.aspects.steps.breakdown import FirstEpochRow
from scalesweep.aspects.steps.figure import first_epoch_figures
from scalesweep.aspects.steps.findings import largest_loss
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR
from tests.fakes.epoch_study import Study
from tests.fakes.finding_rows import said

BASE, LATER = 150.0, 6.5  # s, as in the published study of CosmoFlow's data loading


def times(
    ranks: int, seed: int, reading: float = BASE, later: float = LATER, slow: float = 0.0,
    barrier: float = 0.05, noise: float = 0.01,
) -> dict[str, Any]:  # fmt: skip
    """Three epochs: what each rank reads, one that is slower in the first, the barrier after it."""
    draw = np.random.default_rng((seed, ranks))
    local = np.array([[reading], [later], [later]]) * (
        1 + noise * draw.standard_normal() + 0.001 * draw.standard_normal((3, ranks))
    )
    slow, barrier = (each * (1 + 0.05 * draw.standard_normal()) for each in (slow, barrier))
    local[0, -1] += slow
    ends = np.repeat(local.max(axis=1)[:, None], ranks, axis=1)
    ends[0] += barrier
    return {"local_times": local, "global_times": ends, "span_input": local}


def study_of(root: Path, large: Callable[[int], dict[str, Any]]) -> ExperimentResults:
    study = Study(root)
    for repeat in range(4):
        study.run({"ranks": 1}, None, samples=320, arrays=times(1, repeat))
        study.run({"ranks": 1024 // 64}, None, samples=320 * 16, arrays=large(repeat))
    return study.results()


def test_the_account_of_the_first_epoch() -> None:
    samples = times(4, 1, slow=12.0, barrier=0.5, noise=0.0)
    account = first_epoch_account(samples, account_of(samples, {}, 4), 4)
    middle = sorted(samples["local_times"][0])[1]
    assert account.form == "first" and account.terms["input"] == pytest.approx(middle)
    assert account.terms["persistent"] == pytest.approx(samples["local_times"][0].max() - middle)
    assert account.terms["barrier"] == pytest.approx(0.5, rel=0.2)
    assert account.term("unattributed") == pytest.approx(0, abs=1e-9)
    alone = {name: array[:1] for name, array in samples.items()}
    assert first_epoch_account(alone, account_of(alone, {}, 4), 4) is None  # it is of that epoch
    trains = {**samples, "span_input": samples["local_times"] / 2}
    assert first_epoch_account(trains, account_of(trains, {}, 4), 4) is None


def test_its_largest_loss_is_told_beside_that_of_later_epochs(tmp_path: Path) -> None:
    """The published reading: 50 % in the first epoch; ranks are slow by themselves."""
    study = study_of(tmp_path, lambda seed: times(16, seed, 2 * BASE, 1.5 * LATER))
    every = said(largest_loss(study))
    (finding,) = [each for each in every if each.evidence["table"] == FirstEpochRow.TABLE]
    assert finding.state == CLEAR and finding.evidence["term"] == "input"
    assert "the largest loss is input, 1" in finding.sentence
    assert finding.sentence.endswith("s: without it the first epoch reaches 100 % of the ideal.")
    rows = {row["term"]: row for row in study.rows("first_epoch") if row["ranks"] == 16}
    assert rows["input"]["loss"] == pytest.approx(1e3 * BASE, rel=0.03)
    parts = sum(row["value"] for name, row in rows.items() if name not in ("elapsed", "ideal"))
    assert parts == pytest.approx(rows["elapsed"]["value"])
    assert {row["form"] for row in study.rows("efficiency")} == {"epochs"}
    (drawing,) = first_epoch_figures(study)
    assert drawing.panels[0].x.label.startswith("Time of the first epoch [s]")
