"""The plan: counts, estimates, and the digest that decides what is made again."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.planning.plan import build_plan, check_budget, plan_csv
from scalesweep.planning.plan_text import plan_text
from scalesweep.slurm.job_shape import Shape
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import state_digest

BODY = (
    "axes: {ranks: [1, 2], size: [4, 8]}\nexclude: [{when: 'ranks == 2 and size == 8', "
    "reason: too big}, size == 5]\nrepeats: 2"
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
    assert "excluded in e: 1: too big\nexcluded in e: no point: size == 5\n" in text
    assert f"failed: TIMEOUT: not done after 60 s: ranks=1, size=8 ({ids[1]})" in text
    rows = list(csv.DictReader(io.StringIO(plan_csv(plan))))
    assert [row["status"] for row in rows].count("new") == 4
    assert rows[-1]["status"] == "excluded" and rows[-1]["reason"] == "too big"
    assert {row["ranks"] for row in rows} == {"1", "2"}


def test_oversubscribed_points_are_marked(toy: Path, campaign_of: Callable[..., Campaign]) -> None:
    """Two cores: threads as the benchmark says, or one for each rank."""
    body = "axes: {ranks: [1, 2, 4], threads: [null, 2]}\nfixed: {ranks_per_node: 4}"
    plan = build_plan(campaign := campaign_of(body), states_of(campaign))
    runs = plan["experiments"][0]["runs"]
    assert [run["threads_per_core"] for run in runs] == [0.5, 0.5, 1, 1, 2, 2]
    assert "oversubscribed in e: 2 points (ranks 4): up to 2 threads for each core" in plan_text(
        plan
    )
    path = toy / "benchmarks" / "toy" / "benchmark.yaml"
    path.write_text(path.read_text() + "threads: threads if threads is not null else 0\n")
    plan = build_plan(campaign := campaign_of(body), states_of(campaign))
    text = plan_text(plan)
    assert "oversubscribed in e: 3 points (ranks 2 and 4): up to 4 threads for each core" in text
    # What the framework chooses is not known, but at least one thread for each rank.
    rows = list(csv.DictReader(io.StringIO(plan_csv(plan))))
    assert [row["threads_per_core"] for row in rows] == ["", "1", "", "2", "2", "4"]


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


HEAD = "campaign: test\nsite: toy\nbudget_node_hours: 2\n"


def shape_of(ranks: int, minutes: int = 6) -> Shape:
    """Ranks on as many nodes."""
    return Shape(ranks, ranks, 1, 2, minutes, mem_mb=1024)


def shapes_of(campaign: Campaign, states: dict[str, RunState]) -> dict[str, Shape]:
    return {
        run_id: shape_of(run.point["ranks"])
        for run_id, (_, run) in campaign.unique_runs().items()
        if states[run_id].status != "done"
    }


def job(node_hours: float | None, held_s: float | None, state: str = "COMPLETED") -> dict[str, Any]:
    return {"node_hours": node_hours, "held_s": held_s, "state": state}


def test_jobs_by_shape(campaign_of: Callable[..., Campaign]) -> None:
    campaign = campaign_of("axes: {ranks: [4, 1]}\nrepeats: 3", HEAD)
    states = states_of(campaign)
    for run in campaign.experiments[0].runs[:2]:
        wall_s = 90.0 if run.point["ranks"] == 1 else 60.0
        states[run.run_id] = RunState("done", "1", wall_s=wall_s, source="measured")
    # A failed job has cost node-hours too; what it held is no measure of the others.
    jobs = [job(0.25, 3.0), job(0.5, 6.0), job(0.0625, 99.0, "TIMEOUT"), job(None, None, "RUNNING")]
    plan = build_plan(campaign, states, shapes_of(campaign, states), jobs)
    found = plan["jobs"]
    assert json.loads(json.dumps(plan))["jobs"] == found
    one, four = found["shapes"]
    pending = [run for run in campaign.experiments[0].runs if states[run.run_id].status == "new"]
    assert four == {
        "sbatch": " ".join(shape_of(4).sbatch_words()),
        "nodes": 4, "tasks": 4, "minutes": 6, "jobs": 2,
        "runs": [run.run_id for run in pending if run.point["ranks"] == 4],
        "expected_s": 60.0, "basis": "same point",
        "node_hours_expected": 2 * 4 * (60 + 4.5) / 3600, "node_hours_limit": 2 * 4 * 0.1,
    }  # fmt: skip
    assert (one["nodes"], one["jobs"], one["expected_s"]) == (1, 2, 90.0)
    assert found["node_hours_expected"] == pytest.approx((2 * 94.5 + 8 * 64.5) / 3600)
    assert found["node_hours_limit"] == pytest.approx(1.0)
    assert found["spent_node_hours"] == 0.8125
    assert found["budget_node_hours"] == 2

    lines = plan_text(plan).splitlines()
    (row,) = [line for line in lines if " ".join(shape_of(1).sbatch_words()) in line]
    words = ["2", "1", "min", "30", "s", "same", "point", "6", "min", "00", "s", "0.0525", "0.2"]
    assert row.split()[:13] == words
    assert "4 jobs: 0.196 node-hours expected, 1 at most, retries aside" in lines
    assert lines[-1] == (
        "0.812 node-hours spent of a budget of 2: 1.19 left; these jobs take up to 1"
    )


@pytest.mark.parametrize(("spent", "over"), [(0.9, None), (1.0, None), (1.25, "0.25")])
def test_the_limit_is_held_against_the_budget(
    campaign_of: Callable[..., Campaign], spent: float, over: str | None
) -> None:
    campaign = campaign_of("axes: {ranks: [2, 1]}\nrepeats: 2\nexpected_minutes: 0.1", HEAD)
    states = states_of(campaign)
    shapes = {run_id: shape_of(s.nodes, 10) for run_id, s in shapes_of(campaign, states).items()}
    jobs = build_plan(campaign, states, shapes, [job(spent, 1.0)])["jobs"]
    assert jobs["node_hours_limit"] == 1.0 and jobs["node_hours_expected"] < 0.02
    if over is None:
        check_budget(campaign, jobs)
        return
    with pytest.raises(UserError) as error:
        check_budget(campaign, jobs)
    assert str(error.value) == (
        f"{campaign.file}: budget_node_hours: 2 node-hours, but {spent} are spent and the "
        f"remaining jobs may take 1, {over} too many; raise the budget, or plan fewer repeats, "
        "fewer points or a shorter time_limit_minutes"
    )
    plan = build_plan(campaign, states, shapes, [job(spent, 1.0)])
    assert f"these jobs take up to 1, {over} too many" in plan_text(plan)
