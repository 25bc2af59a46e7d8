"""The policies of a campaign, and what looks wait for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.adaptive.policy import POLICIES, plan_runs
from scalesweep.config.campaign import Campaign

UNTIL = "axes: {ranks: [1, 2, 4]}\nrepeats: {min: 3, max: 4, until: 5 %}\n"
STOP = "axes: {ranks: [1, 2, 4]}\nscaling: weak\nstop: {when: efficiency < 0.5}\n"
PLAIN = "campaign: test\nsite: toy\n"


@pytest.mark.parametrize(
    ("head", "body", "expected", "held"),
    [
        (PLAIN, "axes: {ranks: [1, 2]}\n", "", 0),
        (PLAIN, UNTIL, "PrecisePoints", 0),
        (PLAIN, STOP, "StopAtCount", 2),
        (PLAIN, UNTIL + STOP.partition("\n")[2], "PrecisePoints StopAtCount", 6),
    ],
)
def test_a_campaign_has_the_policies_that_it_states_in_one_order(
    campaign_of: Callable[..., Campaign],
    head: str,
    body: str,
    expected: str,
    held: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # the results folder of the campaign is relative
    plan = plan_runs(campaign_of(body, head))
    assert [type(policy).__name__ for policy in plan.policies] == expected.split()
    assert [kind.__name__ for kind in POLICIES if kind.__name__ in expected] == expected.split()
    assert len(plan.held) == held and not plan.due and plan.lines() == []
    runs = {run.run_id for run in plan.campaign.experiments[0].runs}
    assert plan.looked_at >= runs if expected else plan.looked_at == set()
    # Looks at points wait for all repeats that these may have, planned or not.
    most = 3 * 4 if "repeats" in body else 0
    assert len(plan.looked_at) == (most or (len(runs) if expected else 0))
