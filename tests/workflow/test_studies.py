"""docs/studies.md: its rows are run on two cores or planned; published numbers are imported."""

import itertools

import pytest

from tests.conftest import ROOT, Project
from tests.studies import missing, rows, rows_of
from tests.workflow.small_campaigns import CAMPAIGNS, PROFILED, SHORTER

# Those that go back to no published study.
OF_NO_STUDY = {"frameworks", "torch_scaling"}


@pytest.mark.slow
@pytest.mark.parametrize("campaign", [name for name in SHORTER if name not in OF_NO_STUDY])
def test_rows_that_two_cores_can_carry(small_campaigns: Project, campaign: str) -> None:
    wanted = rows_of(campaign)
    assert wanted
    assert missing(small_campaigns.path / "results", wanted, f"{campaign}_") == []


@pytest.mark.slow
@pytest.mark.parametrize(("campaign", "profile"), PROFILED)
def test_rows_of_profiled_runs(small_campaigns: Project, campaign: str, profile: str) -> None:
    wanted = rows_of(campaign, profile)
    assert wanted
    assert missing(small_campaigns.path / "results", wanted, f"{profile}_{campaign}_") == []


def test_every_row_is_run_planned_or_imported() -> None:
    run = [*itertools.chain.from_iterable(map(rows_of, SHORTER))]
    run += itertools.chain.from_iterable(rows_of(*each) for each in PROFILED)
    assert {row.name for row in rows() if "run" in row.tests} == {row.name for row in run}
    for row in rows():
        assert row.tests, row
        for each in row.tests:  # or another test, by its file
            assert each in {"run", "plan", "import"} or (ROOT / each.strip("`")).is_file(), row
        # tests/unit/planning/test_shipped_campaigns.py plans every campaign, here and for Slurm.
        commands = row.made[0].startswith("scalesweep ")
        assert commands or (CAMPAIGNS / f"{row.made[0]}.yaml").is_file(), row
        assert row.wanted, row
    names = [row.name for row in rows()]
    assert len(set(names)) == len(names) >= 60
