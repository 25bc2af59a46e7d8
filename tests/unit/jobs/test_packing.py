"""Which runs share a Slurm job: none too long, none twice, and blocks that stay together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalesweep.config.campaign import Campaign
from scalesweep.jobs import packing
from scalesweep.jobs.job_cost import cost_of_jobs
from scalesweep.jobs.packing import (
    Item,
    first_fit,
    fits,
    given_s,
    joined,
    packed,
)
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from tests.fakes.allocations import allocated

seconds = st.floats(0.01, 1000, allow_nan=False)
items = st.lists(st.builds(Item, seconds, st.floats(0, 300)), max_size=120)


@settings(max_examples=60)
@given(items=items, capacity_s=st.floats(1, 1500))
def test_every_item_is_in_one_allocation_that_is_not_too_long(
    items: list[Item], capacity_s: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "SOLVER_S", 1)
        # The solver takes a process and some 30 ms; a few items are as good as many.
        patch.setattr(packing, "MOST_BLOCKS", 8)
        found = packed(items, capacity_s)
    assert sorted(place for places in found for place in places) == list(range(len(items)))
    for places in found:
        # One that is too long by itself shares its job with none.
        assert len(places) == 1 or fits(joined([items[p] for p in places]), capacity_s)
    assert len(found) <= len(first_fit(items, capacity_s))


def test_the_solver_finds_what_first_fit_does_not() -> None:
    # Three times 20 s; the longest first puts 4 next to 15 and leaves a second nothing fits in.
    items = [Item(float(size), 0.0) for size in (12, 4, 4, 15, 2, 3, 4, 3, 13)]
    assert (len(first_fit(items, 20.0)), len(packed(items, 20.0))) == (4, 3)
    # Any run of an allocation may take its whole limit, one at a time.
    assert len(packed([Item(10.0, 30.0)] * 4, 60.0)) == 2


@pytest.fixture
def campaign(toy: Path, campaign_of: Callable[..., Campaign]) -> Campaign:
    site = toy / "sites" / "toy.yaml"
    content = site.read_text().replace("oversubscribe: true\n", "")
    slurm = "{startup_minutes: 1, pack: {minutes: 10}}"
    site.write_text(f"{content}memory_gib_per_node: 4\nslurm: {slurm}\n")
    return campaign_of(
        "axes: {ranks: [1, 2], size: [3, 4, 5]}\nrepeats: 6\ntime_limit_minutes: 1",
    )


@pytest.mark.parametrize("wall_s", [None, 2.0])
def test_allocations_are_of_one_shape_in_the_campaigns_order_and_keep_blocks(
    campaign: Campaign, wall_s: float | None
) -> None:
    states, estimates, shapes, found = allocated(campaign, wall_s)
    positions, runs = campaign.positions(), campaign.unique_runs()
    members = [run_id for job in found for run_id in job.run_ids]
    assert sorted(members) == sorted(shapes)
    home = {run_id: number for number, job in enumerate(found) for run_id in job.run_ids}
    for job in found:
        assert job.shape.minutes <= 10
        assert len({runs[run_id][1].point["ranks"] for run_id in job.run_ids}) == 1
        assert list(job.run_ids) == sorted(job.run_ids, key=positions.__getitem__)
        # The last of them has its whole limit, if the others take what is expected.
        each = 3.0 + (given_s(campaign, shapes[job.run_ids[0]]) if wall_s is None else wall_s)
        assert len(job.run_ids) * each <= 60 * (job.shape.minutes - 1) + 1e-6
    blocks: dict[Any, set[int]] = {}
    for run_id in members:
        run = runs[run_id][1]
        blocks.setdefault((run.point["ranks"], run.repeat), set()).add(home[run_id])
    assert all(len(jobs) == 1 for jobs in blocks.values())
    # 18 runs of 63 s, two blocks of three in 540 s; or 15 of 5 s and one that may take 60 s.
    assert [len(job.run_ids) for job in found] == ([6] * 6 if wall_s is None else [15, 15])

    jobs = cost_of_jobs(campaign, shapes, (), estimates)
    assert (jobs["unpacked"]["jobs"], jobs["unpacked"]["too_long"]) == (len(shapes), 0)
    limit = sum(job.shape.node_hours for job in found)
    assert jobs["node_hours_limit"] == pytest.approx(limit)
    assert limit < jobs["unpacked"]["node_hours_limit"]
    text = plan_text(build_plan(campaign, states, shapes, ()))
    assert ("of 6 runs" if wall_s is None else "of 15 runs") in text
    assert f"without shared allocations {len(shapes)} jobs: " in text


def test_the_plan_says_from_when_on_sharing_pays(campaign: Campaign) -> None:
    states, estimates, shapes, _ = allocated(campaign, 2.0)
    # A job of its own held its nodes 5 s beyond the program, a run in a shared one 1 s.
    row = {"state": "COMPLETED", "node_hours": 0.1}
    jobs = [{**row, "run_id": "a", "held_s": 5.0}, {**row, "run_id": "b c d", "held_s": 3.0}]
    cost = cost_of_jobs(campaign, shapes, jobs, estimates)
    assert cost["unpacked"]["break_even_s"] == pytest.approx(1.0)
    assert cost["node_hours_expected"] < cost["unpacked"]["node_hours_expected"]
    text = plan_text(build_plan(campaign, states, shapes, jobs))
    assert "holds its nodes more than 1.0 s beyond its program;" in text
    # Where nothing is expected, nothing is said.
    states, estimates, shapes, _ = allocated(campaign, None)
    assert cost_of_jobs(campaign, shapes, (), estimates)["unpacked"]["break_even_s"] is None


def test_runs_whose_limit_is_too_long_have_jobs_of_their_own(
    campaign: Campaign, campaign_of: Callable[..., Campaign]
) -> None:
    long = campaign_of("axes: {ranks: [1]}\nrepeats: 3\ntime_limit_minutes: 9")
    states, _, shapes, found = allocated(long, None)
    assert [job.run_ids for job in found] == [(run_id,) for run_id in shapes]
    assert [job.shape for job in found] == list(shapes.values())
    text = plan_text(build_plan(long, states, shapes, ()))
    assert "3 runs cannot share an allocation of 10 min: the limit of each leaves no room" in text
