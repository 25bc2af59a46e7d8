"""Points and runs that are made when they are asked for are those that a loop would make."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.config.campaign import Campaign, by_experiment, load_campaign

GRID = """
axes: {size: [1, 2, 4], rate: [5, 6]}
linked: [{ranks: 1, threads: 1}, {ranks: 2, threads: 2}, {ranks: 4, threads: 1}]
extra:
- {size: 8, rate: 5, ranks: 1, threads: 1}
- {size: 2, rate: 6, ranks: 2, threads: 2}
- {size: 8, rate: 5, ranks: 1, threads: 1}
repeats: 3
"""


@pytest.mark.parametrize("profile", ["none", "noexchange", "cprofile"])
def test_a_rule_that_excludes_no_point_changes_nothing(
    campaign_of: Callable[[str], Campaign], profile: str
) -> None:
    body = f"{GRID}profile: {profile}\n"
    lazy, whole = (campaign_of(body + rule) for rule in ("", "exclude: ['rate > 1000']\n"))
    (made,), (looped,) = lazy.experiments, whole.experiments
    assert not isinstance(made.points, tuple) and isinstance(looped.points, tuple)
    places = list(range(len(looped.runs)))
    random.Random(31).shuffle(places)
    for place in places:
        assert made.runs[place] == looped.runs[place]
    # One object, however it is asked for.
    last = made.points[-1]
    assert list(made.points)[-1] is last is made.runs[-1].point
    assert (made.points, made.runs, made.profiles) == (looped.points, looped.runs, looped.profiles)
    assert (
        len(made.points) == 19
        and made.axes == looped.axes
        and made.points[2:4] == [*looped.points[2:4]]
    )
    assert lazy.positions() == whole.positions()
    runs, others = lazy.unique_runs(), whole.unique_runs()
    assert list(runs.items()) and [run for _, run in runs.values()] == [
        run for _, run in others.values()
    ]
    assert [i for _, ids in by_experiment(runs) for i in ids] == list(runs)
    assert [ids for _, ids in by_experiment(dict(runs))] == [list(runs)]
    assert "none" not in runs
    with pytest.raises(KeyError):
        runs["none"]


def test_a_run_of_two_experiments_is_the_first_ones(toy: Path) -> None:
    path = toy / "campaign.yaml"
    path.write_text(
        "campaign: test\nsite: toy\nexperiments:\n"
        "  a: {benchmark: toy, axes: {size: [1, 2]}}\n"
        "  b: {benchmark: toy, axes: {size: [2, 4, 8]}}\n"
    )
    campaign = load_campaign(path)
    runs = campaign.unique_runs()
    asked = [(experiment.name, run.point["size"]) for experiment, run in runs.values()]
    assert asked == [("a", 1), ("a", 2), ("b", 4), ("b", 8)]
    assert [(e.name, len(ids)) for e, ids in by_experiment(runs)] == [("a", 2), ("b", 2)]
    assert list(runs) == list(
        dict.fromkeys(run.run_id for experiment in campaign.experiments for run in experiment.runs)
    )
