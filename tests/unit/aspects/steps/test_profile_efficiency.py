"""Profiles of other tools in the table `efficiency`: the same terms, each variant named."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.profile_account import profile_account, trace_breakdown
from scalesweep.analysis.step_account import PROFILE, StepAccount
from scalesweep.aspects.steps.figure import ledger_figures, waterfall_figures
from scalesweep.aspects.steps.findings import largest_loss
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.profiles.profile_runs import runs_of
from tests.conftest import ROOT
from tests.fakes.finding_rows import said
from tests.unit.aspects.steps.test_efficiency import study_of, terms_of

# 2, 4 and 8 processes, as BSC's modelfactors.py prints them.
EXPORT = ROOT / "tests" / "acceptance" / "imports" / "profiles" / "modelfactors.csv"


def accounts(file: Path) -> dict[int, StepAccount]:
    """The account of each imported profile by its ranks."""
    source = read_source(file)
    assert source.refusals == []
    made = runs_of(source.profiles, file.parent)
    every = {
        run.point["ranks"]: profile_account(run.metrics, run.point["ranks"]) for run in made.runs
    }
    return {ranks: account for ranks, account in every.items() if account is not None}


def test_the_ledger_of_a_profile_adds_up() -> None:
    found = accounts(EXPORT)
    points: Sequence[Any] = [({"ranks": n}, [account], 0) for n, account in sorted(found.items())]
    one = study_of(points, scaling="strong")
    assert {row["form"] for row in one.rows("efficiency")} == {PROFILE}
    # The ledger adds up to the run, whose ideal is that of two processes over 4.
    ledger = terms_of(one, 8)
    assert (elapsed := ledger.pop("elapsed")) == pytest.approx(300)
    assert ledger.pop("ideal") == pytest.approx(1000 / 4)
    assert sum(ledger.values()) == pytest.approx(elapsed)
    assert ledger["unattributed"] == pytest.approx(0, abs=1e-6)
    names = [drawing.name for drawing in (*ledger_figures(one), *waterfall_figures(one))]
    assert names == ["ledger", "waterfall"]
    (finding,) = said(largest_loss(one))
    assert "the largest loss is" in finding.sentence


def of_traces(**values: float) -> StepAccount | None:
    known = {"runtime": 1.0, "computation": 0.6, "exposed_communication": 0.2, "steps": 10.0}
    return trace_breakdown({name: {"value": n} for name, n in {**known, **values}.items()}, 2)


@pytest.mark.parametrize(
    ("values", "persistent", "communication"),
    [
        # Ranks compute 50 and 70 ms: those of 50 wait 20 of their 30 ms of exchange.
        ({"load_balance": 60 / 70}, 0.01, 0.01),
        # An imbalance that no rank waits for is none, and without all ranks none is known.
        ({"load_balance": 0.5, "exposed_communication": 0.05}, 0.005, 0.0),
        ({}, 0.0, 0.02),
    ],
)
def test_a_step_of_imported_traces(
    values: dict[str, float], persistent: float, communication: float
) -> None:
    account = of_traces(**values)
    assert account is not None and account.terms["compute"] == pytest.approx(0.06)
    assert account.terms["persistent"] == pytest.approx(persistent)
    assert account.terms["communication"] == pytest.approx(communication)
    assert of_traces(**values, steps=0.0) is None and of_traces(**values, runtime=-1.0) is None
