"""Which repeats are planned, from the runs on disk and what looks at them have seen."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scalesweep.adaptive.policy import plan_runs
from scalesweep.config.campaign import Campaign, with_repeats
from scalesweep.config.repeats import Run
from scalesweep.core.plan_format import PlanRepeats
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.stock import take_stock
from tests.fakes.records import write_unchecked

Load = Callable[..., Campaign]
BODY = "axes: {size: [1, 2]}\nrepeats: {min: 3, max: 5, until: 5 %, metric: total_throughput}"
RATE = {"unit": "samples/s", "better": "higher", "scope": "total"}


@pytest.fixture
def campaign(campaign_of: Load, tmp_path: Path) -> Campaign:
    return replace(campaign_of(BODY.replace(", metric: total_throughput", "")), results=tmp_path)


def finish(campaign: Campaign, runs: list[Run], values: list[float]) -> None:
    for run, value in zip(runs, values, strict=True):
        metrics = {"speed": {"value": value, **RATE}}
        write_unchecked(
            campaign.runs_folder, run.run_id, benchmark="toy", repeat=run.repeat,
            point=dict(run.point), metrics=metrics, work={"samples_per_epoch": None},
            resources={},
        )  # fmt: skip


def runs_of(campaign: Campaign, size: int) -> list[Run]:
    """Every repeat that a point may have."""
    wide = with_repeats(campaign, {"e": [7, 7]}).experiments[0]
    return [run for run in wide.runs if run.point["size"] == size]


def planned(campaign: Campaign) -> dict[int, int]:
    counts: dict[int, int] = {}
    for run in plan_runs(campaign).campaign.experiments[0].runs:
        counts[run.point["size"]] = counts.get(run.point["size"], 0) + 1
    return counts


def states(campaign: Campaign) -> dict[int, str]:
    return {it["point"]["size"]: it["state"] for it in plan_runs(campaign).repeats["e"]["points"]}


def entry_of(campaign: Campaign) -> tuple[PlanRepeats, str]:
    repeats = plan_runs(campaign)
    known = take_stock(repeats.campaign, repeats.campaign.unique_runs())
    plan = build_plan(repeats.campaign, known)
    repeats.enter(plan)
    return plan["experiments"][0]["repeats"], plan_text(plan)


def test_only_what_is_wide_gets_another_repeat_until_the_maximum(campaign: Campaign) -> None:
    assert planned(campaign) == {1: 3, 2: 3} and states(campaign) == {1: "new", 2: "new"}
    assert "2 points not begun, at least 6 runs" in entry_of(campaign)[1]
    quiet, noisy = runs_of(campaign, 1), runs_of(campaign, 2)
    finish(campaign, quiet[:3], [1.0, 1.01, 0.99])
    finish(campaign, noisy[:2], [1.0, 1.3])
    assert planned(campaign) == {1: 3, 2: 3}
    assert states(campaign) == {1: "precise", 2: "waiting"}
    finish(campaign, noisy[2:3], [0.8])
    assert planned(campaign) == {1: 3, 2: 4} and states(campaign)[2] == "more"
    entry, text = entry_of(campaign)
    assert entry["metric"] == "speed" and entry["level"] == pytest.approx(0.9683, abs=1e-4)
    assert "until ±5 % of speed: 1 point to be repeated, about 2 runs; 1 point precise" in text
    for count in (3, 4):
        finish(campaign, noisy[count : count + 1], [1.1])
    assert planned(campaign) == {1: 3, 2: 5} and states(campaign)[2] == "wide"
    assert "1 point stayed wide" in entry_of(campaign)[1]


def test_finished_repeats_are_used_however_many_are_needed(campaign: Campaign) -> None:
    finish(campaign, runs_of(campaign, 2), [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0])
    assert planned(campaign) == {1: 3, 2: 7} and states(campaign)[2] == "precise"


def test_what_is_lost_is_planned_again(campaign: Campaign) -> None:
    noisy = runs_of(campaign, 2)
    finish(campaign, noisy[:4], [1.0, 1.3, 0.8, 1.1])
    assert planned(campaign)[2] == 5
    (campaign.runs_folder / noisy[1].run_id / "record.json").unlink()
    assert planned(campaign)[2] == 4 and states(campaign)[2] == "waiting"
    for run in noisy[:4]:  # other values under the same names
        shutil.rmtree(campaign.runs_folder / run.run_id)
    finish(campaign, noisy[:4], [1.0, 1.01, 0.99, 1.0])
    assert states(campaign)[2] == "precise"


def test_another_rule_or_metric_looks_again(campaign: Campaign, campaign_of: Load) -> None:
    finish(campaign, runs_of(campaign, 1)[:3], [1.0, 1.01, 0.99])
    assert states(campaign)[1] == "precise"
    for body, state in (
        (BODY.replace(", metric: total_throughput", "").replace("5 %", "0.5 %"), "more"),
        (BODY, "unknown"),  # of total_throughput they have no value
    ):
        other = replace(campaign_of(body), results=campaign.results)
        assert states(other)[1] == state
