"""Profiles of other tools in the table `efficiency`: the same terms, each variant named."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.profile_account import profile_account
from scalesweep.analysis.step_account import PROFILE, StepAccount
from scalesweep.aspects.steps.breakdown_figure import ledger_figures, waterfall_figures
from scalesweep.aspects.steps.losses import largest_loss
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
