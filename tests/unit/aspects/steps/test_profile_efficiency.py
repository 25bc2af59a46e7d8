"""Profiles of other tools in the table `efficiency`: the same terms, each variant named."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.profile_account import profile_account, trace_breakdown
from scalesweep.analysis.step_account import PROFILE, StepAccount
from scalesweep.aspects.steps.figure import ledger_figures, waterfall_figures
from scalesweep.aspects.steps.findings import largest_loss
from scalesweep.experiment.results import ExperimentResults
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.profiles.profile_runs import runs_of
from tests.fakes.finding_rows import said
from tests.unit.aspects.steps.test_efficiency import study_of, terms_of

# 1 and 16 processes of numericalalgorithmsgroup/pypop's example, as BSC's modelfactors.py prints.
PUBLISHED = """Number of processes;1;16
Parallel efficiency;99.925583;95.151184
Load balance;100.000000;99.248259
Communication efficiency;99.925583;95.871892
Serialization efficiency;100.000000;97.952863
Transfer efficiency;99.925583;97.875538
Computation scalability;100.000000;61.436394
Global efficiency;99.925583;58.457456
Speedup;1.000000;9.360158
#
#Runtime (us);21898659.14;2339560.72
#Runtime (ideal);21884758.97;2310335.96
#Useful duration (average);21882362.82;2226119.73
#Useful duration (maximum);21882362.82;2242981.13
#Useful duration (total);21882362.82;35617915.65
#Useful duration (ideal, max);21884758.97;2263040.22
"""


def accounts(tmp_path: Path, **files: str) -> dict[int, StepAccount]:
    """The account of each imported profile by its ranks."""
    tmp_path.mkdir(exist_ok=True)
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text)
    source = read_source(tmp_path)
    assert source.refusals == []
    made = runs_of(source.profiles, tmp_path)
    found = {}
    for run in made.runs:
        ranks = run.point["ranks"]
        if "operation" in run.point:
            continue
        account = profile_account(run.metrics, ranks)
        assert account is not None
        found[ranks] = account
    return found


def study(found: Mapping[int, StepAccount], scaling: str = "strong") -> ExperimentResults:
    points: Sequence[Any] = [({"ranks": n}, [one], 0) for n, one in sorted(found.items())]
    return study_of(points, scaling=scaling)


def test_the_ledger_of_a_published_profile_adds_up(tmp_path: Path) -> None:
    one = study(accounts(tmp_path, modelfactors__csv=PUBLISHED))
    assert {row["form"] for row in one.rows("efficiency")} == {PROFILE}
    # The ledger adds up to the run, whose ideal is that of one process over 16.
    ledger = terms_of(one, 16)
    elapsed, ideal = ledger.pop("elapsed"), ledger.pop("ideal")
    assert elapsed == pytest.approx(2339.56072)
    assert sum(ledger.values()) == pytest.approx(elapsed)
    assert ideal == pytest.approx(21898.65914 / 16)
    assert "unattributed" in ledger
    assert ledger["unattributed"] == pytest.approx(0, abs=1e-6)
    assert [drawing.name for drawing in (*ledger_figures(one), *waterfall_figures(one))] == [
        "ledger", "waterfall",
    ]  # fmt: skip
    (legend,) = ledger_figures(one)[0].figure.legends
    assert "ideal run" in [said.get_text() for said in legend.get_texts()]
    (finding,) = said(largest_loss(one))
    assert "the largest loss is" in finding.sentence
    assert "slower computation" in finding.sentence


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
