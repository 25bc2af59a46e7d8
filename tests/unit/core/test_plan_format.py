"""plan.json: what was written is read, and a damaged one is one line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from scalesweep.planning.plan import build_plan, write_plan
from scalesweep.state.run_state import RunState


def test_a_damaged_plan_is_one_line(
    campaign_of: Callable[..., Campaign], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    campaign = campaign_of("axes: {ranks: [1, 2], size: [4, 8]}\nrepeats: 2")
    plan = build_plan(campaign, dict.fromkeys(campaign.unique_runs(), RunState("new")))
    write_plan(campaign, plan, as_json=True)
    path = campaign.results.resolve() / "plan.json"
    assert read_plan(path) == plan
    entry = {key: value for key, value in plan["experiments"][0].items() if key != "axes"}
    for experiments, said in (([entry], "by another version of scalesweep"), (["x"], "not a plan")):
        path.write_text(json.dumps({**plan, "experiments": experiments}))
        with pytest.raises(UserError, match=f"{path}: .*{said}"):
            read_plan(path)
