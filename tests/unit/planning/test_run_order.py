"""The order of runs: blocks of repeats, drawn from a seed, with the control between them."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.planning.run_order import arranged, positions
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.job_rules import JobRules
from scalesweep.smk.preflight import Preflight

Load = Callable[..., Campaign]
BODY = "axes: {ranks: [1, 2], size: [1, 3, 5]}\nrepeats: 2"


def runs_of(points: int, repeats: int) -> dict[str, int]:
    return {f"p{point}-{repeat}": repeat for repeat in range(repeats) for point in range(points)}


def test_repeats_come_in_blocks_each_in_another_order() -> None:
    order = arranged(runs_of(20, 3), 0)
    blocks = [order[i : i + 20] for i in (0, 20, 40)]
    points = []
    for repeat, block in enumerate(blocks):
        assert {name.partition("-")[2] for name in block} == {str(repeat)}
        points.append([name.partition("-")[0] for name in block])
    assert points[0] != points[1] != points[2] != points[0]
    assert sorted(points[0]) == sorted(points[1]) == sorted(points[2])
    assert order == arranged(runs_of(20, 3), 0) != arranged(runs_of(20, 3), 1)


def test_as_written_keeps_the_file_and_profiled_runs_come_last() -> None:
    runs = runs_of(5, 2)
    assert arranged(runs, None, [], ["x", "w"]) == [*runs, "x", "w"]
    assert set(arranged(runs, 0, ["c0", "c1"], ["x", "w"])[-2:]) == {"x", "w"}


@pytest.mark.parametrize("every", [1, 3, 10, 100])
@pytest.mark.parametrize("repeats", [1, 5])
def test_the_control_is_first_last_and_near(campaign_of: Load, every: int, repeats: int) -> None:
    """Of a point that is one of the experiment's own, too, whose runs are control runs."""
    head = f"control: {{experiment: e, point: {{size: 3, ranks: 1}}, every: {every}}}\n"
    body = BODY.replace("repeats: 2", f"repeats: {repeats}")
    campaign = campaign_of(body, f"campaign: c\nsite: toy\n{head}")
    own, controls = ({run.run_id for run in e.runs} for e in campaign.experiments)
    at = positions(campaign)
    places = sorted(at[run_id] for run_id in controls)
    assert len(places) == 1 + -(-len(own - controls) // every)
    assert places[0] == 1 and places[-1] == len(at) == len(own | controls)
    assert max(b - a - 1 for a, b in pairwise(places)) <= every


def test_no_more_runs_at_once_than_the_site_allows(toy: Path, campaign_of: Load) -> None:
    with (toy / "sites" / "toy.yaml").open("a") as site:
        site.write("concurrent_runs: 3\n")

    def at_once(body: str) -> set[int]:
        campaign = campaign_of(body)
        context = SnakemakeContext(campaign, {}, {}, campaign.unique_runs())
        jobs = JobRules(context, Preflight(context))
        return {cores // jobs.threads_of(next(iter(context.runs)), cores) for cores in range(1, 40)}

    assert at_once(BODY) == {1, 2, 3}
    assert at_once(f"{BODY}\nconcurrent_runs: 1") == {1}
