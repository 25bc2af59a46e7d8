"""What is advised for a campaign: candidates, the set under a budget, and the file."""

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.adaptive.advice import Candidate, choose
from scalesweep.adaptive.advised_campaign import advised_campaign
from scalesweep.commands.advise import CAMPAIGN, TABLE, run
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.record import write_failure
from scalesweep.state.run_state import RunState
from tests.unit.adaptive import test_policy as policy

Load = Callable[..., Campaign]
WEAK = """
scaling: weak
axes: {ranks: [1, 2, 4, 8], size: [5]}
fixed: {ranks_per_node: 16}
repeats: 2
"""


def candidate(words: str, cost: float, value: float, refused: str = "") -> Candidate:
    return Candidate("e", {}, words, 0, 1, cost, value, "why", refused=refused)


@pytest.mark.parametrize(
    ("budget", "chosen"), [(10.0, "abcd"), (4.0, "bcd"), (3.0, "bc"), (1.0, "b"), (0.5, "")]
)
def test_the_set_that_is_worth_most_is_chosen(budget: float, chosen: str) -> None:
    """Of what is worth as much the cheaper; nothing that is refused."""
    every = [
        candidate("a", 4, 1), candidate("b", 1, 1), candidate("c", 2, 1), candidate("d", 1, 0.8),
        candidate("e", 0.1, 1, "no"),
    ]  # fmt: skip
    made = choose(every, budget)
    assert "".join(each.words for each in made if each.chosen) == chosen


@pytest.fixture
def load(campaign_of: Load, tmp_path: Path) -> Callable[..., Campaign]:
    def loaded(body: str) -> Campaign:
        return campaign_of(body, f"campaign: test\nsite: toy\nresults: {tmp_path / 'results'}\n")

    return loaded


def finish(campaign: Campaign, speed: Callable[[Any], float], upto: int = 8) -> None:
    """Finish the runs of up to so many ranks: 36 s each, a little slower every time."""
    for one in campaign.experiments:
        for planned in one.runs:
            if planned.point["ranks"] <= upto:
                value = speed(planned.point) * (1 + 0.01 * planned.repeat)
                policy.finish(campaign, [planned], [value], wall_s=36.0 + planned.repeat)


def advise(campaign: Campaign, budget: float | None = 2) -> list[dict[str, str]]:
    run(argparse.Namespace(campaign=str(campaign.file), site=None, results=None, budget=budget))
    with (campaign.results / TABLE).open(newline="") as file:
        return list(csv.DictReader(file))


def falling(point: Any) -> float:
    return float(point["ranks"] / (1 + 0.02 * math.log2(point["ranks"])))


def test_holes_are_candidates(load: Load) -> None:
    campaign = load(WEAK)
    finish(campaign, falling, upto=4)
    rows = {row["point"]: row for row in advise(campaign)}
    assert list(rows) == ["ranks=8"]  # the next doubling is planned, and is a hole
    assert rows["ranks=8"]["reason"] == "no result yet" and rows["ranks=8"]["more_runs"] == "2"
    assert 72 < 3600 * float(rows["ranks=8"]["node_hours"]) < 120
    last = campaign.runs_folder / [*campaign.unique_runs()][-1]
    write_failure(last, {"cause": "TIMEOUT", "detail": "not done"})
    (row,) = advise(load(WEAK + "time_limit_minutes: 0.6\n"))
    assert row["chosen"] == "False" and "the limit is 36 s" in row["reason"]


def test_a_run_that_a_call_would_not_start_is_no_candidate(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = load(WEAK)
    finish(campaign, falling)
    stale = dict.fromkeys(campaign.unique_runs(), RunState("stale"))
    monkeypatch.setattr("scalesweep.commands.advise.take_stock", lambda *_: stale)
    (row,) = advise(campaign)
    assert row["reason"].startswith("next doubling")


def test_the_next_doubling_is_a_candidate(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = load(WEAK)
    finish(campaign, falling)
    (row,) = advise(campaign)
    assert row["point"] == "ranks=16" and row["chosen"] == "True"
    assert "next doubling: the predicted interval spans a factor of 1." in row["reason"]
    assert 0 < float(row["value"]) < 1
    # One node for a little more than the 36.5 s of a run.
    assert 36.5 < 3600 * float(row["node_hours"]) < 60
    assert "what to measure next with 2 node-hours" in capsys.readouterr().out
    # The written campaign has the finished runs and the advised one; a wider original finds all.
    written = {*load_campaign(campaign.results / CAMPAIGN).unique_runs()}
    assert len(written) == 9 and {*campaign.unique_runs()} < written
    assert written < {*load(WEAK.replace("4, 8]", "4, 8, 16]")).unique_runs()}


def test_a_scale_that_is_no_rank_count_is_doubled_too(load: Load) -> None:
    campaign = load("scaling: weak\nscale: size\naxes: {size: [1, 2, 4]}\nrepeats: 2\n")
    finish(campaign, lambda point: float(point["size"]))
    (row,) = advise(campaign)
    assert row["point"] == "size=8" and row["reason"].startswith("next doubling")


def test_what_is_not_paid_is_a_row_too(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = load(WEAK)
    finish(campaign, falling)
    (row,) = advise(campaign, 0.001)
    assert row["chosen"] == "False" and row["reason"].startswith("next doubling")
    assert "nothing that the budget and the time limits allow" in capsys.readouterr().out
    assert not (campaign.results / CAMPAIGN).exists()


def test_stop_says_how_far_series_go(load: Load) -> None:
    campaign = load(WEAK + "stop_below: 10 %\n")
    finish(campaign, falling)
    assert advise(campaign) == []


def test_a_site_that_starts_nothing_is_told(load: Load, toy: Path) -> None:
    campaign, site = load(WEAK), toy / "sites" / "toy.yaml"
    site.write_text("site: toy\nnodes: 1\noversubscribe: true\n")
    with pytest.raises(UserError, match=r"has no 'launch': .*; name a site that has"):
        advise(campaign)


def test_what_takes_longer_than_its_limit_is_refused(load: Load) -> None:
    campaign = load(WEAK + "time_limit_minutes: 0.6\n")
    finish(campaign, falling)
    (row,) = advise(campaign)
    assert row["chosen"] == "False" and "the limit is 36 s" in row["reason"]


def test_variables_extra_points_and_what_exclusions_read(campaign_of: Load, tmp_path: Path) -> None:
    campaign = campaign_of(
        "axes: {env.A: [null, x], size: [1, 2]}\nfixed: {env.B: 'y', env.C: z, most: 3}\n"
        "extra: [{env.A: w, env.B: v, size: 3}]\nexclude: [size > most]"
    )
    states = dict.fromkeys(campaign.unique_runs(), RunState("done"))
    written = tmp_path / "advice.yaml"
    content = yaml.safe_load(campaign.file.read_text())
    more = [("e", campaign.experiments[0].points[0], 0)]
    written.write_text(yaml.safe_dump(advised_campaign(content, campaign, states, more, "")))
    again = load_campaign(written)
    assert {*again.unique_runs()} == {*campaign.unique_runs()} and len(states) == 5
    assert again.experiments[0].axes == ("size", "env.A", "env.B")
