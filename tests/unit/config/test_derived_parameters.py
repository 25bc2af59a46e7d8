"""Parameters that an experiment derives: its runs, excluded points and series, and refusals."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from scalesweep.adaptive.advice import next_point
from scalesweep.config.campaign import Campaign
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.results import ExperimentResults
from scalesweep.jobs.run_spec import run_spec
from scalesweep.planning.plan import build_plan
from scalesweep.report.experiment_part import fixed_parameters
from scalesweep.state.run_state import RunState

# As many samples in all at every number of ranks, for each rank or each two of them.
GRID = """
scaling: strong
axes: {ranks: [1, 2, 3, 4], threads: [1, 2], total: [12, 24]}
derive:
  lanes: {value: ranks // threads, unit: ranks, doc: Ranks that share the samples.}
  size: total / lanes
exclude: [{when: ranks % threads != 0, reason: threads take whole ranks}, size >= 24]
repeats: 2
"""


def test_runs_are_those_of_values_that_are_set(campaign_of: Callable[[str], Campaign]) -> None:
    campaign = campaign_of(GRID)
    (experiment,) = campaign.experiments
    by_hand = campaign_of(
        "repeats: 2\nlinked:\n"
        + "".join(
            f"- {{ranks: {ranks}, threads: {threads}, size: {total * threads // ranks}}}\n"
            for ranks, threads in ((1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (4, 2))
            for total in (12, 24)
            if total * threads // ranks < 24
        )
    )
    assert {*campaign.unique_runs()} == {*by_hand.unique_runs()} and len(experiment.runs) == 20
    spec = run_spec(campaign, experiment, experiment.runs[0])
    assert spec["params"]["size"] == 12 and not {"total", "lanes"} & spec["params"].keys()


def test_impossible_points_are_excluded_with_reason(campaign_of: Callable[[str], Campaign]) -> None:
    (experiment,) = campaign_of(GRID.replace("12, 24", "10, 12, 24")).experiments
    reasons = Counter(reason for _, reason in experiment.excluded)
    assert reasons == {
        "threads take whole ranks": 3,
        "size >= 24": 2,
        "size = total / lanes cannot be worked out": 3,
        "size = total / lanes is not an integer from 1 to 1000": 2,
    }
    assert experiment.axes == ("ranks", "threads", "total")
    assert all(
        point["size"] * point["ranks"] == point["total"] * point["threads"]
        for point in experiment.points
    )
    assert all(type(point["size"]) is int for point in experiment.points)


def test_the_plan_says_what_is_derived_or_a_quantity(
    campaign_of: Callable[[str], Campaign],
) -> None:
    campaign = campaign_of(GRID)
    states = dict.fromkeys(campaign.unique_runs(), RunState("new"))
    (entry,) = build_plan(campaign, states)["experiments"]
    point = {"ranks": 4, "threads": 2, "total": 24}
    every = parameters_at(entry, point)
    assert (every["lanes"], every["size"], every["rate"]) == (2, 12, 1.0)
    shown = {
        item["name"]: item["value"]
        for item in fixed_parameters(ExperimentResults(entry, {}))["set"]
    }
    assert shown["size"] == "= total / lanes" and shown["lanes"] == "= ranks // threads"
    assert entry["parameters"]["lanes"]["unit"] == "ranks"


def test_advice_at_other_scales(campaign_of: Callable[[str], Campaign], tmp_path: Path) -> None:
    campaign = campaign_of(GRID)
    (experiment,) = campaign.experiments
    known = {
        point["ranks"]: point
        for point in experiment.points
        if (point["threads"], point["total"]) == (2, 12)
    }
    assert sorted(known) == [2, 4]

    def at(ranks: int) -> tuple[int, int] | None:
        point = next_point(experiment, campaign.site, known, ranks)
        return point and (point["lanes"], point["size"])

    assert (at(8), at(6), at(10)) == ((4, 3), (3, 4), None)
