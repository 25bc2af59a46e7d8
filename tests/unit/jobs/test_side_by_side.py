"""Runs at the same time on nodes of their own: when they begin, and which share an allocation."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.status import Status
from scalesweep.jobs.job_cost import cost_of_jobs
from scalesweep.jobs.packing import OVERHEAD_S, Allocation, allocations
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.jobs.side_by_side import Task, fill, timetable
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.slurm.job_shape import STARTUP_MB
from scalesweep.state.run_state import RunState
from tests.fakes.allocations import allocated

NODES = 4
tasks = st.lists(
    st.builds(Task, st.integers(1, NODES), st.integers(1, 50), st.integers(0, 30)), max_size=40
)


def begun(of: list[Task]) -> list[tuple[int, float, float]]:
    """Nodes, start and end of each run, by looking at every moment at which one ends."""
    found: list[tuple[int, float, float]] = []
    now = 0.0
    for task in of:
        while sum(nodes for nodes, _, end in found if end > now) + task.nodes > NODES:
            now = min(end for _, _, end in found if end > now)
        found.append((task.nodes, now, now + task.expected_s))
    return found


@settings(max_examples=60)
@given(of=tasks)
def test_runs_begin_in_order_as_soon_as_nodes_are_free(of: list[Task]) -> None:
    table, runs = timetable(NODES, of), begun(of)
    assert table.end_s == max((end for *_, end in runs), default=0.0)
    in_use = [[one for one in runs if one[1] <= start < one[2]] for _, start, _ in runs]
    assert table.peak_runs == max(map(len, in_use), default=0)
    assert table.peak_nodes == max((sum(n for n, *_ in one) for one in in_use), default=0)
    if of:  # as many nodes as are ever in use at once are enough
        assert timetable(table.peak_nodes, of).end_s == table.end_s


@settings(max_examples=60)
@given(of=tasks, place=st.integers(0, 39), more=st.integers(1, 50))
def test_a_run_that_takes_longer_delays_none_by_more(of: list[Task], place: int, more: int) -> None:
    place = min(place, len(of) - 1)
    if place < 0:
        return
    longer = [*of[:place], of[place]._replace(expected_s=of[place].expected_s + more)]
    later = begun([*longer, *of[place + 1 :]])
    assert all(
        0 <= new - old <= more for (_, old, _), (_, new, _) in zip(begun(of), later, strict=True)
    )


@settings(max_examples=60)
@given(of=tasks, blocks=st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_every_run_is_in_one_allocation_in_order(of: list[Task], blocks: list[int]) -> None:
    blocks = sorted(blocks)[: len(of)]
    found = fill(of, blocks, NODES, 100.0)
    assert [place for places in found for place in places] == list(range(len(of)))
    for places in found:
        mine = [of[place] for place in places]
        assert len(places) == 1 or timetable(NODES, mine).needs_s <= 100.0
        # What its runs are packed into when they are submitted is one allocation again.
        assert len(fill(mine, [blocks[place] for place in places], NODES, 100.0)) == 1


SITE = """\
site: toy
nodes: 8
cores_per_node: 4
memory_gib_per_node: 4
launch: {single: [srun, -n, '1'], multi: [python, gloo.py, /usr/bin/srun, --]}
slurm: {startup_minutes: 1, pack: {minutes: 10, nodes: 4}}
"""


@pytest.fixture
def site(toy: Path) -> Path:
    path = toy / "sites" / "toy.yaml"
    path.write_text(SITE)
    return path


def test_runs_of_several_sizes_share_allocations_of_whole_nodes(
    site: Path, campaign_of: Callable[..., Campaign]
) -> None:
    grid = "axes: {ranks: [1, 2, 4, 8]}\nfixed: {ranks_per_node: 1}\nrepeats: 6"
    campaign = campaign_of(f"{grid}\ntime_limit_minutes: 1\nmemory_gib_per_rank: 1")
    positions, runs = campaign.positions(), campaign.unique_runs()
    states, estimates, shapes, found = allocated(campaign, 2.0)
    small, large = sorted(found, key=lambda job: job.shape.nodes)
    assert sorted(small.run_ids + large.run_ids) == sorted(shapes)
    # Those of more nodes share allocations of their own, one after the other.
    assert {runs[i][1].point["ranks"] for i in large.run_ids} == {8}
    assert large.shape == replace(shapes[large.run_ids[0]], minutes=large.shape.minutes)
    assert large.at_once == 1 and len(large.run_ids) == 5
    assert {runs[i][1].point["ranks"] for i in small.run_ids} == {1, 2, 4}
    assert list(small.run_ids) == sorted(small.run_ids, key=positions.__getitem__)
    shape = small.shape
    assert (shape.nodes, shape.tasks, shape.tasks_per_node, shape.cpus_per_task) == (4, 4, 1, 4)
    assert shape.mem_mb == 1024 + STARTUP_MB * small.at_once and small.at_once >= 2
    each = [Task(shapes[i].nodes, 2 + OVERHEAD_S, 61.0) for i in small.run_ids]
    assert 60 * (shape.minutes - 1) >= timetable(4, each).end_s

    jobs = cost_of_jobs(campaign, shapes, (), estimates)
    by_nodes = {line["nodes"]: line for line in jobs["shapes"]}
    assert by_nodes[4]["at_once"] == small.at_once and "at_once" not in by_nodes[8]
    end_s = timetable(4, [one._replace(expected_s=2.0) for one in each]).end_s
    assert by_nodes[4]["node_hours_expected"] == pytest.approx(4 * end_s / 3600)
    assert by_nodes[8]["node_hours_expected"] == pytest.approx(8 * 5 * 2 / 3600)
    text = plan_text(build_plan(campaign, states, shapes, ()))
    assert f"1 of 15 runs, up to {small.at_once} at once" in text
    assert "without shared allocations 20 jobs: " in text


def test_an_allocation_is_no_larger_than_its_runs_need(
    site: Path, campaign_of: Callable[..., Campaign]
) -> None:
    campaign = campaign_of("axes: {size: [1, 2, 3]}\ntime_limit_minutes: 1")
    _, _, shapes, found = allocated(campaign, None)
    (job,) = found
    assert (job.shape.nodes, job.at_once, job.shape.minutes) == (3, 3, 3)
    # Kept off some nodes, they take no more than are left.
    site.write_text(site.read_text().replace("nodes: 8", "nodes: 4"))
    campaign = campaign_of("axes: {size: [1, 2, 3]}\ntime_limit_minutes: 1")
    elsewhere = {i: replace(shape, exclude="n[1-2]") for i, shape in shapes.items()}
    states = dict.fromkeys(shapes, RunState(Status.NEW))
    (job,) = allocations(campaign, elsewhere, Estimates(campaign, states))
    assert (job.shape.nodes, job.shape.exclude, len(job.run_ids)) == (2, "n[1-2]", 3)
    one = campaign_of("axes: {size: [1]}\ntime_limit_minutes: 1")
    _, _, shapes, found = allocated(one, None)
    assert found == [Allocation(shape, (run_id,)) for run_id, shape in shapes.items()]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("nodes: 4}", "nodes: 16}", "slurm.pack.nodes: 16 is more than the site's nodes, 8"),
        ("slurm:", "concurrent_runs: 1\nslurm:", "which concurrent_runs: 1 rules out; leave out"),
        ("single: [srun, -n, '1']", "single: []", "launch.single does not start srun, which alone"),
        ("/usr/bin/srun, --", "mpirun", "slurm.pack.nodes: launch.multi does not start srun"),
    ],
)
def test_what_cannot_keep_runs_apart_is_refused(
    site: Path, campaign_of: Callable[..., Campaign], old: str, new: str, said: str
) -> None:
    content = site.read_text()
    assert old in content
    site.write_text(content.replace(old, new))
    with pytest.raises(UserError) as caught:
        campaign_of("axes: {size: [1]}")
    assert said in str(caught.value)


def test_a_benchmark_that_starts_no_steps_is_refused(
    site: Path, toy: Path, campaign_of: Callable[..., Campaign]
) -> None:
    path = toy / "benchmarks" / "toy" / "benchmark.yaml"
    path.write_text(f"{path.read_text()}launch: {{single: [srun], multi: [mpirun]}}\n")
    campaign_of("axes: {ranks: [1]}")  # which is not started with the other one
    with pytest.raises(UserError) as caught:
        campaign_of("axes: {ranks: [1, 2]}")
    assert "benchmark toy: launch.multi does not start srun" in str(caught.value)
