"""Every shipped campaign plans as it is, with and without ``--profile slurm``."""

from pathlib import Path

import pytest

from scalesweep.core.status import Status
from scalesweep.jobs.job_requests import shapes_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.smk.campaign_args import read_campaign
from scalesweep.state.run_state import RunState
from tests.conftest import ROOT

CAMPAIGNS = ROOT / "config" / "campaigns"
SHIPPED = [ROOT / "config" / "config.yaml", *sorted(CAMPAIGNS.glob("*/*.yaml"))]
LARGE = {"cnn_grid"}


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.stem in LARGE), id=p.stem) for p in SHIPPED],
)
def test_a_shipped_campaign_plans_here_and_for_slurm(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_CONF"):
        monkeypatch.delenv(name, raising=False)
    planned = []
    for in_slurm in (False, True):
        options = {"results": str(tmp_path / "results")}
        campaign = read_campaign(path, options, in_slurm, write=False).campaign
        states = dict.fromkeys(campaign.unique_runs(), RunState(Status.NEW))
        shapes = shapes_for(campaign, states, Estimates(campaign, states)) if in_slurm else None
        plan = build_plan(campaign, states, shapes)
        assert plan["experiments"] and (plan["jobs"] is not None) == in_slurm
        assert plan_text(plan)
        planned.append(set(states))
    assert planned[0] == planned[1]
