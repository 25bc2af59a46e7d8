"""The plan: counts, estimates, and the digest that decides what is made again."""

import csv
import io
from collections.abc import Callable

from scalesweep.campaign import Campaign
from scalesweep.plan import build_plan, duration, plan_csv, plan_text, state_digest
from scalesweep.store import RunState

BODY = (
    "axes: {ranks: [1, 2], size: [4, 8]}\nexclude: [{when: 'ranks == 2 and size == 8', "
    "reason: too big}]\nrepeats: 2"
)


def states_of(campaign: Campaign) -> dict[str, RunState]:
    return dict.fromkeys(campaign.unique_runs(), RunState("new"))


def test_counts_add_up(campaign_of: Callable[..., Campaign]) -> None:
    campaign = campaign_of(BODY)
    states = states_of(campaign)
    ids = list(states)
    states[ids[0]] = RunState("done", "1", wall_s=100.0, source="measured")
    states[ids[1]] = RunState("failed", "2", "TIMEOUT", "not done after 60 s")
    plan = build_plan(campaign, states)
    text = plan_text(plan)
    assert "campaign test on site toy: 6 runs, 1 done, 1 failed, 4 new" in text
    row = next(line for line in text.splitlines() if line.startswith("e "))
    assert row.split()[:10] == ["e", "toy", "none", "3", "6", "4", "1", "1", "1", "1-2"]
    assert "excluded in e: 1: too big" in text
    assert f"failed: {ids[1]}: TIMEOUT: not done after 60 s" in text
    rows = list(csv.DictReader(io.StringIO(plan_csv(plan))))
    assert [row["status"] for row in rows].count("new") == 4
    assert rows[-1]["status"] == "excluded" and rows[-1]["reason"] == "too big"
    assert {row["ranks"] for row in rows} == {"1", "2"}


def test_estimates_come_from_alike_runs(campaign_of: Callable[..., Campaign]) -> None:
    campaign = campaign_of("axes: {ranks: [1, 2]}\nrepeats: 3")
    states = states_of(campaign)
    assert build_plan(campaign, states)["experiments"][0]["estimate"]["wall_s"] is None
    for run in campaign.experiments[0].runs[:2]:
        seconds = 10.0 * run.point["ranks"]
        states[run.run_id] = RunState("done", "1", wall_s=seconds, source="measured")
    estimate = build_plan(campaign, states)["experiments"][0]["estimate"]
    assert estimate["wall_s"] == 2 * 10 + 2 * 20
    assert estimate["core_hours"] == 60 * 2 / 3600  # a node of two cores


def test_estimates_before_the_first_run(campaign_of: Callable[..., Campaign]) -> None:
    campaign = campaign_of("repeats: 4\nexpected_minutes: 3")
    plan = build_plan(campaign, states_of(campaign))
    assert plan["experiments"][0]["estimate"]["wall_s"] == 4 * 180
    assert "still to run: about 12m 00s" in plan_text(plan)


def test_the_state_digest_follows_what_matters(campaign_of: Callable[..., Campaign]) -> None:
    campaign = campaign_of("repeats: 2")
    states = states_of(campaign)
    first = state_digest(campaign, states)
    assert first == state_digest(campaign_of("# a comment\nrepeats:   2"), states)
    assert first != state_digest(campaign_of("description: x\nrepeats: 2"), states)
    run_id = next(iter(states))
    assert first != state_digest(campaign, {**states, run_id: RunState("done", "1")})
    assert state_digest(campaign, {**states, run_id: RunState("done", "1")}) != state_digest(
        campaign, {**states, run_id: RunState("done", "2")}
    )


def test_durations() -> None:
    told = [duration(s) for s in (0, 59.4, 60, 200, 3600, 7500, None)]
    assert told == ["0 s", "59 s", "1m 00s", "3m 20s", "1h 00m", "2h 05m", "unknown"]
