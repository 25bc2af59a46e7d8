"""plan.json: what was written is read, and a damaged one is one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from scalesweep.planning.plan import build_plan, write_plan
from scalesweep.state.run_state import RunState

OTHER = "written by another version of scalesweep"


def without(*keys: str | int) -> Callable[[Any], None]:
    """Take a field out of a plan."""

    def change(plan: Any) -> None:
        for key in keys[:-1]:
            plan = plan[key]
        del plan[keys[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("site"), OTHER),
        (without("experiments", 0, "axes"), OTHER),
        (without("experiments"), "not a plan ('experiments')"),
        (lambda plan: plan.update(experiments=["x"]), "not a plan ("),
    ],
)
def test_a_damaged_plan_is_one_line(
    campaign_of: Callable[..., Campaign], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Any], None], said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    campaign = campaign_of("axes: {ranks: [1, 2], size: [4, 8]}\nrepeats: 2")
    plan = build_plan(campaign, dict.fromkeys(campaign.unique_runs(), RunState("new")))
    write_plan(campaign, plan, as_json=True)
    path = campaign.results.resolve() / "plan.json"
    assert read_plan(path) == plan
    broken: Any = dict(plan)
    change(broken)
    path.write_text(json.dumps(broken))
    with pytest.raises(UserError) as error:
        read_plan(path)
    assert said in str(error.value) and str(error.value).startswith(f"{path}: ")
