"""Which runs are planned, from the runs on disk: repeats until precise, and counts left out."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.adaptive.policy import plan_runs, with_repeats
from scalesweep.config.campaign import Campaign
from scalesweep.config.repeats import Run
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.stock import take_stock
from tests.fakes.records import write_run

Load = Callable[..., Campaign]
UNTIL = "axes: {size: [1, 2]}\nrepeats: {min: 3, max: 5, until: 5 %}"
STOP = """\
scaling: weak
axes: {ranks: [1, 2, 4, 8], rate: [1, 2]}
repeats: 3
stop_below: 50 %
"""
RATE = {"unit": "samples/s", "better": "higher", "scope": "total"}


@pytest.fixture
def until(campaign_of: Load, tmp_path: Path) -> Campaign:
    """Two points without a fixed number of repeats."""
    return replace(campaign_of(UNTIL), results=tmp_path)


@pytest.fixture
def stop(campaign_of: Load, tmp_path: Path) -> Campaign:
    """Two series of four counts that may be stopped."""
    return replace(campaign_of(STOP), results=tmp_path)


def finish(campaign: Campaign, runs: list[Run], values: list[float], **more: Any) -> None:
    """Runs have these values of the metric ``speed``."""
    for run, value in zip(runs, values, strict=False):
        shutil.rmtree(campaign.runs_folder / run.run_id, ignore_errors=True)
        write_run(
            campaign.runs_folder, run.run_id, {}, benchmark="toy", repeat=run.repeat,
            point=dict(run.point), metrics={"speed": {"value": value, **RATE}},
            work={"samples_per_epoch": None}, resources={}, **more,
        )  # fmt: skip


def entry_of(campaign: Campaign) -> tuple[PlanExperiment, str]:
    """The experiment in the plan after a look, and the plan's text."""
    chosen = plan_runs(campaign)
    plan = build_plan(chosen.campaign, take_stock(chosen.campaign, chosen.campaign.unique_runs()))
    chosen.enter(plan)
    return plan["experiments"][0], plan_text(plan)


def runs_of(campaign: Campaign, size: int) -> list[Run]:
    """Every repeat that a point may have."""
    wide = with_repeats(campaign, {"e": [7, 7]}).experiments[0]
    return [run for run in wide.runs if run.point["size"] == size]


def planned(campaign: Campaign) -> dict[int, int]:
    return Counter(run.point["size"] for run in plan_runs(campaign).campaign.experiments[0].runs)


def states(campaign: Campaign) -> dict[int, str]:
    return {it["point"]["size"]: it["state"] for it in plan_runs(campaign).repeats["e"]["points"]}


def test_only_what_is_wide_gets_another_repeat_until_the_maximum(until: Campaign) -> None:
    assert planned(until) == {1: 3, 2: 3} and states(until) == {1: "new", 2: "new"}
    assert "2 points not begun, at least 6 runs" in entry_of(until)[1]
    quiet, noisy = runs_of(until, 1), runs_of(until, 2)
    finish(until, quiet[:3], [1.0, 1.01, 0.99])
    finish(until, noisy[:2], [1.0, 1.3])
    assert planned(until) == {1: 3, 2: 3}
    assert states(until) == {1: "precise", 2: "waiting"}
    finish(until, noisy[2:3], [0.8])
    assert planned(until) == {1: 3, 2: 4} and states(until)[2] == "more"
    entry, text = entry_of(until)
    repeats = entry["repeats"]
    assert repeats["metric"] == "speed" and repeats["level"] == pytest.approx(0.9683, abs=1e-4)
    assert "until ±5 % of speed: 1 point to be repeated, about 2 runs; 1 point precise" in text
    for count in (3, 4):
        finish(until, noisy[count : count + 1], [1.1])
    assert planned(until) == {1: 3, 2: 5} and states(until)[2] == "wide"
    assert "1 point stayed wide" in entry_of(until)[1]


def test_finished_repeats_are_used_whatever_is_needed(until: Campaign, campaign_of: Load) -> None:
    finish(until, runs_of(until, 2), [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0])
    assert planned(until) == {1: 3, 2: 7} and states(until)[2] == "precise"
    # Another rule looks again.
    finish(until, runs_of(until, 1)[:3], [1.0, 1.01, 0.99])
    assert states(until)[1] == "precise"
    other = replace(campaign_of(UNTIL.replace("5 %", "0.5 %")), results=until.results)
    assert states(other)[1] == "more"


def at(campaign: Campaign, ranks: int, rate: float = 1) -> list[Run]:
    """The repeats of a point of a series."""
    runs = campaign.experiments[0].runs
    return [run for run in runs if (run.point["ranks"], run.point["rate"]) == (ranks, rate)]


def left(campaign: Campaign) -> dict[float, list[int]]:
    """Counts that are measured, by series, after a look."""
    found: dict[float, list[int]] = {}
    for point in plan_runs(campaign).campaign.experiments[0].points:
        found.setdefault(point["rate"], []).append(point["ranks"])
    return found


def released(campaign: Campaign) -> set[int]:
    """Counts of which runs may begin."""
    plan = plan_runs(campaign)
    runs = plan.campaign.experiments[0].runs
    return {run.point["ranks"] for run in runs if run.run_id not in plan.held}


ALL = {1: [1, 2, 4, 8], 2: [1, 2, 4, 8]}


def test_larger_counts_are_left_out_once_a_smaller_one_is_clearly_below(stop: Campaign) -> None:
    assert left(stop) == ALL and released(stop) == {1}
    finish(stop, at(stop, 1), [10.0, 10.1, 9.9])
    assert left(stop) == ALL
    # The other series has not begun: its counts wait, these do not.
    assert released(stop) == {1, 2}
    finish(stop, at(stop, 2), [9.0])
    assert left(stop) == ALL
    finish(stop, at(stop, 2), [9.0, 9.1, 8.9])  # 9 / 20: clearly below
    assert left(stop) == {1: [1, 2], 2: [1, 2, 4, 8]}
    entry, text = entry_of(stop)
    (excluded,) = {each["reason"] for each in entry["excluded"]}
    assert excluded.startswith("efficiency < 0.5 at ranks 2: efficiency 0.450 (95 %: 0.4")
    assert f"excluded in e: 2: {excluded}" in text and excluded.endswith(", 3 repeats)")
    assert "left out once efficiency < 0.5: up to ranks 8 so far" in text
    assert len(entry["runs"]) == 3 * (2 + 4)


def test_no_decision_without_an_interval_on_one_side(stop: Campaign) -> None:
    finish(stop, at(stop, 1), [10.0, 10.1, 9.9])
    for values in ([8.0], [8.0, 11.5, 9.0], [9.0, 9.0, 9.0]):
        finish(stop, at(stop, 2), values)
        assert left(stop) == ALL, values
    # The largest count leaves nothing out.
    finish(stop, at(stop, 2), [19.0, 19.1, 18.9])
    finish(stop, at(stop, 4), [39.0, 39.1, 38.9])
    finish(stop, at(stop, 8), [9.0, 9.1, 8.9])
    assert left(stop) == ALL


def test_a_decision_holds_until_its_evidence_is_gone(stop: Campaign, campaign_of: Load) -> None:
    finish(stop, at(stop, 1), [10.0, 10.1, 9.9])
    finish(stop, at(stop, 2), [9.0, 9.1, 8.9])
    finish(stop, at(stop, 8), [70.0])  # has a result: stays, without further repeats
    assert left(stop)[1] == [1, 2, 8]
    runs = [run for run in plan_runs(stop).campaign.experiments[0].runs if run.point["rate"] == 1]
    assert len(runs) == 7
    # More results of other points change nothing.
    finish(stop, at(stop, 1, 2), [10.0, 10.1, 9.9])
    assert left(stop)[1] == [1, 2, 8]
    # A rule that is another one, or evidence that is gone, is another matter.
    other = replace(campaign_of(STOP.replace("50 %", "40 %")), results=stop.results)
    assert left(other) == ALL
    (stop.runs_folder / runs[0].run_id / "record.json").unlink()
    # Two of three repeats say the same.
    assert left(stop)[1] == [1, 2, 8]
    for path in stop.runs_folder.glob("*/record.json"):
        path.unlink()
    assert left(stop) == ALL and released(stop) == {1}


def test_a_run_of_the_control_alone_is_awaited_by_no_count(
    campaign_of: Load, tmp_path: Path
) -> None:
    control = "control: {experiment: e, point: {ranks: 1, rate: 1}, every: 2}\n"
    body = STOP.replace("repeats: 3", "repeats: {min: 3, max: 9, until: 50 %}")
    campaign = campaign_of(body, f"campaign: c\nsite: toy\nresults: {tmp_path}/r\n{control}")
    finish(campaign, at(campaign, 1), [10.0, 10.1, 9.9])
    assert released(campaign) == {1, 2}
