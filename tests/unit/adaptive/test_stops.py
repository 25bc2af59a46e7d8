"""Which counts of a series are left out, and what undoes it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scalesweep.adaptive.policy import plan_runs
from scalesweep.config.campaign import Campaign
from scalesweep.planning.plan import build_plan, plan_csv
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.stock import take_stock
from tests.fakes.records import write_unchecked

Load = Callable[..., Campaign]
BODY = """\
scaling: weak
axes: {ranks: [1, 2, 4, 8], rate: [1, 2]}
repeats: 3
stop: {when: "efficiency < 0.5"}
"""
RATE = {"unit": "samples/s", "better": "higher", "scope": "total"}


@pytest.fixture
def campaign(campaign_of: Load, tmp_path: Path) -> Campaign:
    return replace(campaign_of(BODY), results=tmp_path)


def finish(campaign: Campaign, ranks: int, values: list[float], rate: float = 1) -> None:
    """Repeats of a point have these values of the metric ``speed``."""
    runs = [
        run
        for run in campaign.experiments[0].runs
        if (run.point["ranks"], run.point["rate"]) == (ranks, rate)
    ]
    for run, value in zip(runs, values, strict=False):
        shutil.rmtree(campaign.runs_folder / run.run_id, ignore_errors=True)
        write_unchecked(
            campaign.runs_folder, run.run_id, benchmark="toy", repeat=run.repeat,
            point=dict(run.point), metrics={"speed": {"value": value, **RATE}},
            work={"samples_per_epoch": None}, resources={},
        )  # fmt: skip


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


def test_larger_counts_are_left_out_once_a_smaller_one_is_clearly_below(
    campaign: Campaign,
) -> None:
    assert left(campaign) == ALL and released(campaign) == {1}
    finish(campaign, 1, [10.0, 10.1, 9.9])
    assert left(campaign) == ALL
    # The other series has not begun: its counts wait, these do not.
    assert released(campaign) == {1, 2}
    finish(campaign, 2, [9.0])
    assert left(campaign) == ALL
    finish(campaign, 2, [9.0, 9.1, 8.9])  # 9 / 20: clearly below
    assert left(campaign) == {1: [1, 2], 2: [1, 2, 4, 8]}
    plan = plan_runs(campaign)
    known = take_stock(plan.campaign, plan.campaign.unique_runs())
    entry = build_plan(plan.campaign, known)
    plan.enter(entry)
    (excluded,) = {one["reason"] for one in entry["experiments"][0]["excluded"]}
    assert excluded.startswith("efficiency < 0.5 at ranks 2: efficiency 0.450 (95 %: 0.4")
    assert excluded.endswith(", 3 repeats)")
    text = plan_text(entry)
    assert f"excluded in e: 2: {excluded}" in text
    assert "counts of e are measured from the smallest" in text
    assert "left out once efficiency < 0.5: up to ranks 8 so far" in text
    assert plan_csv(entry).count(f'"{excluded}"') == 2
    assert len(plan.campaign.experiments[0].runs) == 3 * (2 + 4)


def test_no_decision_without_an_interval_on_one_side(campaign: Campaign) -> None:
    finish(campaign, 1, [10.0, 10.1, 9.9])
    for values in ([8.0], [8.0, 11.5, 9.0], [9.0, 9.0, 9.0]):
        finish(campaign, 2, values)
        assert left(campaign) == ALL, values
    # The largest count leaves nothing out.
    finish(campaign, 2, [19.0, 19.1, 18.9])
    finish(campaign, 4, [39.0, 39.1, 38.9])
    finish(campaign, 8, [9.0, 9.1, 8.9])
    assert left(campaign) == ALL


def test_a_decision_holds_until_its_evidence_is_gone(campaign: Campaign, campaign_of: Load) -> None:
    finish(campaign, 1, [10.0, 10.1, 9.9])
    finish(campaign, 2, [9.0, 9.1, 8.9])
    finish(campaign, 8, [70.0])  # has a result: stays, without further repeats
    assert left(campaign)[1] == [1, 2, 8]
    runs = [
        run for run in plan_runs(campaign).campaign.experiments[0].runs if run.point["rate"] == 1
    ]
    assert len(runs) == 7
    # More results of other points change nothing.
    finish(campaign, 1, [10.0, 10.1, 9.9], rate=2)
    assert left(campaign)[1] == [1, 2, 8]
    # A rule that is another one, or evidence that is gone, is another matter.
    other = replace(campaign_of(BODY.replace("0.5", "0.4")), results=campaign.results)
    assert left(other) == ALL
    (campaign.runs_folder / runs[0].run_id / "record.json").unlink()
    # Two of three repeats say the same.
    assert left(campaign)[1] == [1, 2, 8]
    for path in campaign.runs_folder.glob("*/record.json"):
        path.unlink()
    assert left(campaign) == ALL and released(campaign) == {1}
