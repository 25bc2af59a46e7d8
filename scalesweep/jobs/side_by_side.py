"""Short runs at the same time on disjoint nodes of the allocations that they share.

Runs begin in the campaign's order, each as soon as as many nodes are free as it takes
(``scalesweep.compute.pack_launcher``). None overtakes another one: besides the order this keeps the
end predictable: where one run takes d seconds longer no other begins, and the whole ends, more than
d later. Where runs may overtake others that is not so (Graham, Bounds on multiprocessing timing
anomalies, SIAM Journal on Applied Mathematics 17, 1969).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple, Self

from scalesweep.slurm.job_shape import STARTUP_MB, Shape


class Task(NamedTuple):
    """A run in an allocation: nodes, seconds that it is expected to take, and more that it may."""

    nodes: int
    expected_s: float
    spare_s: float = 0.0


class Timetable:
    """When the nodes of an allocation are free again, after the runs that it has so far."""

    def __init__(self, nodes: int) -> None:
        self._free_s = [0.0] * nodes  # sorted
        self._begun_s = 0.0
        self._spare_s = 0.0
        self.peak_nodes = 0  # at most so many are in use at the same time
        self.peak_runs = 0
        self._ends_s: list[float] = []  # of the runs that have not ended when the last begins

    @property
    def end_s(self) -> float:
        """When all runs are expected to be over."""
        return self._free_s[-1]

    @property
    def needs_s(self) -> float:
        """The same if that run takes longest that may."""
        return self.end_s + self._spare_s

    def after(self, tasks: Iterable[Task]) -> Self:
        """This timetable with further runs. Raises IndexError for one of more nodes."""
        timetable = type(self)(len(self._free_s))
        timetable.__dict__.update(self.__dict__)
        for task in tasks:
            timetable._add(task)
        return timetable

    def _add(self, task: Task) -> None:
        start_s = max(self._begun_s, self._free_s[task.nodes - 1])
        end_s = start_s + task.expected_s
        self._free_s = sorted([*self._free_s[task.nodes :], *[end_s] * task.nodes])
        self._ends_s = [*(end for end in self._ends_s if end > start_s), end_s]
        self._begun_s = start_s
        self._spare_s = max(self._spare_s, task.spare_s)
        in_use = sum(free_s > start_s for free_s in self._free_s)
        self.peak_nodes = max(self.peak_nodes, in_use, task.nodes)
        self.peak_runs = max(self.peak_runs, len(self._ends_s))


def timetable(nodes: int, tasks: Iterable[Task]) -> Timetable:
    """That of an allocation with these runs in their order."""
    return Timetable(nodes).after(tasks)


def fill(
    tasks: Sequence[Task], blocks: Sequence[object], nodes: int, capacity_s: float
) -> list[list[int]]:
    """Places of the runs by allocation, each of at most ``nodes`` and ``capacity_s`` seconds.

    In their order: an allocation is full once the next run, or the next runs of one of ``blocks``
    (of each run), do not fit; of a block that fits into none as many as fit.
    """
    rows: list[list[int]] = []
    table = Timetable(nodes)
    for _, members in groupby(range(len(tasks)), key=blocks.__getitem__):
        block = list(members)
        whole = timetable(nodes, (tasks[place] for place in block)).needs_s <= capacity_s
        for part in [block] if whole else [[place] for place in block]:
            longer = table.after(tasks[place] for place in part)
            if rows and longer.needs_s <= capacity_s:
                rows[-1] += part
                table = longer
            else:
                rows.append(part)
                table = timetable(nodes, (tasks[place] for place in part))
    return rows


def kind(shape: Shape, most_nodes: int) -> Shape:
    """What runs have in common that may share allocations of at most so many nodes: of those that
    take more, the whole request but its time."""
    if shape.nodes > most_nodes:
        return replace(shape, minutes=0)
    # Without a request Slurm gives memory by CPU: then no run has asked for any.
    mem_mb = None if shape.mem_mb is None else 0
    return replace(
        shape, nodes=0, tasks=0, tasks_per_node=0, cpus_per_task=0, minutes=0, mem_mb=mem_mb
    )


def whole_nodes(
    shapes: Sequence[Shape], nodes: int, at_once: int, minutes: int, most_mb: int | None
) -> Shape:
    """The request of an allocation of so many nodes on each of which any of these runs fits.

    ``at_once``: how many launchers there are at the same time, all on the first node, whose memory
    (MiB) is at most ``most_mb``.
    """
    first = shapes[0]
    if len({replace(shape, minutes=0) for shape in shapes}) == 1 and first.nodes == nodes:
        return replace(first, minutes=minutes)
    mem_mb = None
    if first.mem_mb is not None:
        mem_mb = max(shape.mem_mb or 0 for shape in shapes) + STARTUP_MB * (at_once - 1)
        mem_mb = mem_mb if most_mb is None else min(mem_mb, most_mb)
    cpus = max(shape.tasks_per_node * shape.cpus_per_task for shape in shapes)
    return replace(
        first, nodes=nodes, tasks=nodes, tasks_per_node=1, cpus_per_task=cpus, minutes=minutes,
        mem_mb=mem_mb,
    )  # fmt: skip
