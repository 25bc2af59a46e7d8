"""Short runs in allocations that they share: which runs go into which Slurm job.

Runs of one shape (all that is asked of Slurm but the time) share allocations of at most
``slurm: {pack: {minutes}}`` of the site, one after the other in the campaign's order. An allocation
lasts as long as its runs are expected to take (the upper bound of the prediction where there is
one, the whole limit where nothing is known), and so much longer that any one of them may take its
whole limit.

What is packed are blocks: the runs of one shape that belong to one block of the campaign's order
stay in one allocation where they fit. So what is compared within a block is measured on the same
nodes, one after the other.

With ``pack: {nodes}`` runs of different numbers of nodes share larger allocations, several at the
same time (``side_by_side``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from scalesweep.analysis.cbc import cbc
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.site import Site
from scalesweep.core.host_list import expand
from scalesweep.core.profilers import NONE
from scalesweep.jobs.job_requests import canary_s
from scalesweep.jobs.runtime_estimates import PREDICTED, Estimates
from scalesweep.jobs.side_by_side import Task, fill, kind, timetable, whole_nodes
from scalesweep.slurm.job_shape import MB_PER_GB, Shape, of_slurm

# Of each run in an allocation beyond its program: launcher, step, files (measured: 0.5 to 1.5 s).
OVERHEAD_S = 3.0
# A programme of more blocks takes CBC longer than its result saves; of so many the first fit,
# longest first, is within a few per cent of the best.
MOST_BLOCKS = 40
SOLVER_S = 5
_ROUNDING_S = 1e-6


class Item(NamedTuple):
    """What stays together: seconds that it is expected to take, and more that it may take."""

    expected_s: float
    spare_s: float


@dataclass(frozen=True)
class Allocation:
    """A Slurm job and its runs, in their order; of one run it is that run's own job.

    ``at_once``: how many of them are measured at the same time, as far as is expected.
    """

    shape: Shape
    run_ids: tuple[str, ...]
    at_once: int = 1


def pack_minutes(site: Site) -> int | None:
    """The longest allocation that runs share on a site; None where each has its own."""
    return site.slurm.pack_minutes if site.slurm else None


def given_s(campaign: Campaign, shape: Shape) -> float:
    """Seconds that a run has at most, in a job of its own of this shape, with its canary."""
    return (shape.minutes - of_slurm(campaign.site).startup_minutes) * 60


def allocations(
    campaign: Campaign, shapes: Mapping[str, Shape], estimates: Estimates
) -> list[Allocation]:
    """The jobs of these runs (run id -> what its own job would ask for).

    Where runs share allocations, these are in the order of their first runs.
    """
    minutes = pack_minutes(campaign.site)
    if minutes is None:
        return [Allocation(shape, (run_id,)) for run_id, shape in shapes.items()]
    positions = campaign.positions()
    run_ids = sorted(shapes, key=positions.__getitem__)
    startup = of_slurm(campaign.site).startup_minutes
    capacity_s = (minutes - startup) * 60
    runs = campaign.unique_runs()
    blocks = _blocks(campaign, runs, run_ids)
    if of_slurm(campaign.site).pack_nodes is not None:
        return _side_by_side(campaign, shapes, run_ids, blocks, estimates)
    places_in_order = {run_id: place for place, run_id in enumerate(run_ids)}
    groups: dict[Shape, dict[tuple[str, int], list[str]]] = {}
    for run_id in run_ids:
        block = groups.setdefault(replace(shapes[run_id], minutes=0), {})
        block.setdefault(blocks[run_id], []).append(run_id)
    packs: list[Allocation] = []
    for shape, by_block in groups.items():
        needs = {
            run_id: _need(campaign, *runs[run_id], shapes[run_id], estimates)
            for members in by_block.values()
            for run_id in members
        }
        items: list[tuple[list[str], Item]] = []
        for members in by_block.values():
            whole = joined([needs[run_id] for run_id in members])
            if fits(whole, capacity_s):
                items.append((members, whole))
            else:
                items += [([run_id], needs[run_id]) for run_id in members]
        for places in packed([item for _, item in items], capacity_s):
            members = [run_id for place in places for run_id in items[place][0]]
            ids = sorted(members, key=places_in_order.__getitem__)
            if len(ids) == 1:
                packs.append(Allocation(shapes[ids[0]], (ids[0],)))
                continue
            total = joined([needs[run_id] for run_id in ids])
            longest = math.ceil((total.expected_s + total.spare_s - _ROUNDING_S) / 60 + startup)
            packs.append(Allocation(replace(shape, minutes=longest), tuple(ids)))
    return sorted(packs, key=lambda allocation: places_in_order[allocation.run_ids[0]])


def _side_by_side(
    campaign: Campaign,
    shapes: Mapping[str, Shape],
    run_ids: Sequence[str],
    blocks: Mapping[str, tuple[str, int]],
    estimates: Estimates,
) -> list[Allocation]:
    """The same where runs are measured at the same time on nodes of their own; ``run_ids`` are in
    the campaign's order."""
    site, slurm, runs = campaign.site, of_slurm(campaign.site), campaign.unique_runs()
    most_mb = (
        None if site.memory_gib_per_node is None else int(site.memory_gib_per_node * MB_PER_GB)
    )
    assert slurm.pack_minutes is not None
    capacity_s = (slurm.pack_minutes - slurm.startup_minutes) * 60 + _ROUNDING_S
    kinds: dict[Shape, list[str]] = {}
    for run_id in run_ids:
        shape = shapes[run_id]
        kinds.setdefault(kind(shape, _most_nodes(site, shape)), []).append(run_id)
    packs: list[Allocation] = []
    for key, members in kinds.items():
        tasks = [
            Task(shapes[i].nodes, *_need(campaign, *runs[i], shapes[i], estimates)) for i in members
        ]
        nodes = key.nodes or _most_nodes(site, key)
        for places in fill(tasks, [blocks[i] for i in members], nodes, capacity_s):
            ids = tuple(members[place] for place in places)
            if len(ids) == 1:
                packs.append(Allocation(shapes[ids[0]], ids))
                continue
            table = timetable(nodes, (tasks[place] for place in places))
            minutes = math.ceil((table.needs_s - _ROUNDING_S) / 60 + slurm.startup_minutes)
            own = [shapes[run_id] for run_id in ids]
            shape = whole_nodes(own, table.peak_nodes, table.peak_runs, minutes, most_mb)
            packs.append(Allocation(shape, ids, table.peak_runs))
    positions = campaign.positions()
    return sorted(packs, key=lambda allocation: positions[allocation.run_ids[0]])


def _most_nodes(site: Site, shape: Shape) -> int:
    """Nodes of an allocation at most: no more than are left where it is kept off some."""
    most = of_slurm(site).pack_nodes
    assert most is not None
    return max(1, min(most, site.nodes - len(expand(shape.exclude))))


def joined(items: Sequence[Item]) -> Item:
    """What several items need together: any one of them may take longer than is expected."""
    return Item(sum(i.expected_s for i in items), max((i.spare_s for i in items), default=0.0))


def fits(item: Item, capacity_s: float) -> bool:
    """Whether what an item may take is within an allocation of ``capacity_s``."""
    return item.expected_s + item.spare_s <= capacity_s + _ROUNDING_S


def packed(items: Sequence[Item], capacity_s: float) -> list[list[int]]:
    """Places of the items by allocation, as few allocations as are found.

    First fit, longest first; where that is not known to be the least and there are few items, an
    integer programme looks for fewer for some seconds. An item that does not fit is on its own.
    """
    places_of = first_fit(items, capacity_s)
    small = [place for place, item in enumerate(items) if fits(item, capacity_s)]
    alone = len(items) - len(small)
    most = len(places_of) - alone
    if most > _least([items[place] for place in small], capacity_s) and len(small) <= MOST_BLOCKS:
        fewer = _solved([items[place] for place in small], capacity_s, most - 1)
        if fewer is not None:
            large = [[place] for place in range(len(items)) if place not in set(small)]
            places_of = [[small[place] for place in places] for places in fewer] + large
    return places_of


def first_fit(items: Sequence[Item], capacity_s: float) -> list[list[int]]:
    """Each item, the longest first, in the first allocation that has room for it."""
    bins: list[list[int]] = []
    # Of each allocation what ``joined`` says; written out here, as there may be millions of looks.
    loads: list[float] = []
    spares: list[float] = []
    most_s = capacity_s + _ROUNDING_S
    for place in sorted(range(len(items)), key=lambda place: -items[place].expected_s):
        expected_s, spare_s = items[place]
        for number, load_s in enumerate(loads):
            both_s, most_spare_s = load_s + expected_s, max(spares[number], spare_s)
            if both_s + most_spare_s <= most_s:
                bins[number].append(place)
                loads[number], spares[number] = both_s, most_spare_s
                break
        else:
            bins.append([place])
            loads.append(expected_s)
            spares.append(spare_s)
    return bins


def _least(items: Sequence[Item], capacity_s: float) -> int:
    """A number of allocations below which there can be none."""
    if not items:
        return 0
    room_s = capacity_s - min(item.spare_s for item in items)
    total_s = sum(item.expected_s for item in items)
    return max(1, math.ceil(total_s / room_s - 1e-9)) if room_s > 0 else len(items)


def _solved(items: Sequence[Item], capacity_s: float, most: int) -> list[list[int]] | None:
    """The items in at most so many allocations; None if there is no such way, or none was found
    in time."""
    import pulp  # 50 ms, which campaigns without shared allocations are spared

    problem = pulp.LpProblem("allocations", pulp.LpMinimize)
    used = [problem.add_variable(f"y{b}", cat="Binary") for b in range(most)]
    spare = [problem.add_variable(f"s{b}", lowBound=0) for b in range(most)]
    # Item i is in one of the first i + 1: allocations have no order of their own.
    inside = {
        (i, b): problem.add_variable(f"x{i}_{b}", cat="Binary")
        for i in range(len(items))
        for b in range(min(i + 1, most))
    }
    problem += pulp.lpSum(used)
    for i in range(len(items)):
        problem += pulp.lpSum(inside[i, b] for b in range(min(i + 1, most))) == 1
    for b in range(most):
        mine = [i for i in range(len(items)) if (i, b) in inside]
        load = pulp.lpSum(items[i].expected_s * inside[i, b] for i in mine)
        problem += load + spare[b] <= capacity_s * used[b]
        for i in mine:
            problem += spare[b] >= items[i].spare_s * inside[i, b]
    problem.solve(cbc(SOLVER_S))
    bins: list[list[int]] = [[] for _ in range(most)]
    for (i, b), variable in inside.items():
        if (variable.value() or 0) > 0.5:
            bins[b].append(i)
    bins = [places for places in bins if places]
    # What a solver gave up on may be no solution, and it rounds.
    whole = sorted(place for places in bins for place in places) == list(range(len(items)))
    kept = all(fits(joined([items[place] for place in places]), capacity_s) for places in bins)
    return bins if whole and kept else None


def _need(
    campaign: Campaign, experiment: Experiment, run: Run, shape: Shape, estimates: Estimates
) -> Item:
    """What a run is expected to take in an allocation, and how much more it may take."""
    limit_s = given_s(campaign, shape)
    known = estimates.seconds(experiment, run)
    if estimates.basis(experiment, run) == PREDICTED:
        known = (estimates.predicted(experiment, run) or (0.0, known))[1]
    most_s = limit_s + OVERHEAD_S
    if known is None:
        return Item(most_s, 0.0)
    expected_s = min(most_s, known + canary_s(campaign, run.point) + OVERHEAD_S)
    return Item(expected_s, most_s - expected_s)


def _blocks(
    campaign: Campaign, runs: Mapping[str, tuple[Experiment, Run]], run_ids: Sequence[str]
) -> dict[str, tuple[str, int]]:
    """The block of each of these runs, which are in the campaign's order: profiler and number.

    A run of the control point belongs to the block that it is measured in, whatever its number.
    """
    control = {run.run_id for e in campaign.experiments if e.control for run in e.runs}
    blocks: dict[str, tuple[str, int]] = {}
    block = 0
    for run_id in run_ids:
        run = runs[run_id][1]
        if run.profile == NONE and run_id not in control:
            block = run.repeat
        blocks[run_id] = (run.profile, block)
    return blocks
