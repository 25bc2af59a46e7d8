"""Which rules a campaign has by which what was measured decides, and what waits."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.adaptive.policy import new_runs, plan_runs
from scalesweep.config.campaign import Campaign

UNTIL = "axes: {ranks: [1, 2, 4]}\nrepeats: {min: 3, max: 4, until: 5 %}\n"
STOP = "axes: {ranks: [1, 2, 4]}\nscaling: weak\nstop: {when: efficiency < 0.5}\n"
PLAIN = "campaign: test\nsite: toy\n"


@pytest.mark.parametrize(
    ("head", "body", "grows", "held"),
    [
        (PLAIN, "axes: {ranks: [1, 2]}\n", False, 0),
        (PLAIN, UNTIL, True, 0),
        (PLAIN, STOP, True, 2),
        (PLAIN, UNTIL + STOP.partition("\n")[2], True, 6),
    ],
)
def test_a_campaign_has_the_rules_that_it_states(
    campaign_of: Callable[..., Campaign],
    head: str,
    body: str,
    grows: bool,
    held: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # the results folder of the campaign is relative
    plan = plan_runs(campaign_of(body, head))
    assert plan.grows == grows and len(plan.held) == held
    runs = {run.run_id for run in plan.campaign.experiments[0].runs}
    assert new_runs(plan) == runs - plan.held
