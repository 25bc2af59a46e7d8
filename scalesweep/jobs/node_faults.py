"""Nodes that jobs are kept off for a while: those that Slurm lost, and those at which runs fail.

A node that fails every run at once is idle again at once, so it takes run after run. Two runs that
failed on it in the same way make it a suspect, if none has succeeded there since and none has
failed in this way anywhere else. One of the two is then tried again without it. If it fails
elsewhere in the same way, the program is at fault, and the node is asked for again. The node is, if
that run, or another of a point that failed there, succeeds elsewhere, and chance does not explain
it: runs that crash now and then meet on one node, too (``Suspicion.chance``).

What was seen is kept next to the runs, so that the next call knows it; nothing in it is older than
``AVOID_S``.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from scalesweep.core.host_list import expand, joined
from scalesweep.slurm.job_shape import Shape
from scalesweep.state.sealed_json import read_sealed, write_sealed

NODES = ".nodes.json"  # in the folder of a site's runs
# How long a node is avoided: by then somebody has looked at it, or it fails two runs again.
AVOID_S = 24 * 3600.0
# Endings that are kept; a node that swallows runs shows within a few.
MOST = 1000
# Runs that must have failed on a node in the same way. What many nodes had together says little
# of any one of them.
ENOUGH, MOST_NODES = 2, 16
# No more nodes than that are called at fault where all are sound, in a campaign.
CHANCE = 0.02
_FORMAT = 1


class Ending(NamedTuple):
    """How a run ended: its point, the nodes that it had, the kind of its failure (empty: none, the
    run succeeded) in words, and when (seconds since the epoch)."""

    run_id: str
    point: str
    nodes: tuple[str, ...]
    kind: str
    at: float


class Lost(NamedTuple):
    """A node that Slurm lost: by which cause, in which job, and when."""

    node: str
    cause: str
    job_id: int
    at: float


class Suspicion(NamedTuple):
    """What speaks against a node: the kind of failure, the runs, how many runs have succeeded
    elsewhere of the points that failed there and how many of all, on how many nodes runs were, and
    when it was last seen."""

    node: str
    kind: str
    run_ids: tuple[str, ...]
    elsewhere: int
    succeeded: int
    nodes: int
    at: float

    @property
    def chance(self) -> float:
        """How many nodes are expected to look like this one where any run fails so by chance.

        Of m runs elsewhere none has: by Laplace's rule of succession the next one does with
        1 / (m + 2), and k of them on one node with the k-th power.
        """
        return float(self.nodes * (1 / (self.succeeded + 2)) ** len(self.run_ids))

    @property
    def confirmed(self) -> bool:
        """Whether a run of a point that failed on the node has succeeded without it, and chance
        explains no such failures."""
        return self.elsewhere > 0 and self.chance <= CHANCE


def suspicions(endings: Iterable[Ending]) -> list[Suspicion]:
    """The nodes on which runs fail that nothing but the node explains, the latest first."""
    every = [ending for ending in endings if len(ending.nodes) <= MOST_NODES or not ending.kind]
    all_nodes = {node for end in every for node in end.nodes}
    failed: dict[tuple[str, str], list[Ending]] = {}
    for end in every:
        for node in end.nodes if end.kind else ():
            failed.setdefault((node, end.kind), []).append(end)
    suspicions = []
    for (node, kind), ends in failed.items():
        run_ids = tuple(dict.fromkeys(end.run_id for end in ends))
        first = min(end.at for end in ends)
        if len(run_ids) < ENOUGH:
            continue
        here = [end for end in every if node in end.nodes]
        without = [end for end in every if node not in end.nodes]
        if any(not end.kind and end.at >= first for end in here):
            continue
        if any(end.kind == kind for end in without):
            continue
        points = {end.point for end in ends}
        every_done = {end.run_id for end in without if not end.kind}
        done = {end.run_id for end in without if not end.kind and end.point in points}
        last = max(end.at for end in ends)
        suspicions.append(
            Suspicion(node, kind, run_ids, len(done), len(every_done), len(all_nodes), last)
        )
    return sorted(suspicions, key=lambda suspicion: -suspicion.at)


@dataclass
class NodeFaults:
    """The nodes that one site's jobs are kept off; ``runs`` is the folder of its runs."""

    runs: Path
    clock: Callable[[], float] = time.time
    lost: list[Lost] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    # Of a node and a kind of failure: the run that is tried again without the node.
    _trials: dict[tuple[str, str], str] = field(default_factory=dict)
    _said: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def read(cls, runs: Path, clock: Callable[[], float] = time.time) -> "NodeFaults":
        """What earlier calls have seen; nothing where it was not kept, or not whole."""
        faults = cls(runs, clock)
        try:
            kept = read_sealed(runs / NODES, _FORMAT)
            faults.lost = [Lost(str(n), str(c), int(j), float(t)) for n, c, j, t in kept["lost"]]
            faults.endings = [
                Ending(str(run_id), str(point), tuple(map(str, nodes)), str(kind), float(at))
                for run_id, point, nodes, kind, at in kept["endings"]
            ]
        except (OSError, ValueError, KeyError, TypeError):
            return cls(runs, clock)
        faults._forget()
        # A call that was killed may have left a node under suspicion: the next one tries again.
        return faults

    def _forget(self) -> None:
        oldest = self.clock() - AVOID_S
        self.lost = [loss for loss in self.lost if loss.at >= oldest]
        self.endings = [end for end in self.endings if end.at >= oldest][-MOST:]

    def keep(self) -> None:
        """Write what was seen next to the runs. Raises OSError."""
        self._forget()
        self.runs.mkdir(parents=True, exist_ok=True)
        content = {"lost": self.lost, "endings": self.endings}
        write_sealed(self.runs / NODES, _FORMAT, content, durable=False)

    def note_lost(self, nodes: Sequence[str], cause: str, job_id: int) -> str:
        """Note nodes that Slurm lost; a line that says so, empty for what is known."""
        known = {(loss.node, loss.job_id) for loss in self.lost}
        new = [node for node in nodes if (node, job_id) not in known]
        if not new:
            return ""
        self.lost += [Lost(node, cause, job_id, self.clock()) for node in new]
        return (
            f"{', '.join(new)}: {cause} in job {job_id}: scalesweep asks for other nodes until "
            f"{self._until(self.clock())}, as long as enough are left"
        )

    def note_end(self, ending: Ending) -> list[str]:
        """Note how a run ended on its nodes; lines on what that says of them."""
        before = {(suspicion.node, suspicion.kind) for suspicion in self.suspicions}
        self.endings.append(ending)
        now = {(suspicion.node, suspicion.kind): suspicion for suspicion in self.suspicions}
        lines = []
        for key, suspicion in now.items():
            if suspicion.confirmed and key not in self._said:
                self._said.add(key)
                until = self._until(suspicion.at)
                lines.append(f"{self.tell(suspicion)}; scalesweep avoids it until {until}")
        for node, kind in before - now.keys():
            acted = (node, kind) in self._said or self._trials.pop((node, kind), "")
            self._said.discard((node, kind))
            if acted:
                lines.append(f"{node}: asked for again: not this node alone fails with {kind}")
        return lines

    @property
    def suspicions(self) -> list[Suspicion]:
        """Nodes on which runs fail, the latest first."""
        return suspicions(self.endings) if any(ending.kind for ending in self.endings) else []

    def tell(self, suspicion: Suspicion) -> str:
        """What speaks against a node, in words."""
        return (
            f"{suspicion.node}: {len(suspicion.run_ids)} runs failed there in the same way "
            f"({suspicion.kind}), none succeeded there since, and {suspicion.elsewhere} of the "
            "same points succeeded on other nodes"
        )

    def why_avoided(self) -> Mapping[str, str]:
        """Each node that is avoided, and why, in words."""
        reasons = {
            loss.node: f"{loss.cause} in job {loss.job_id}, avoided until {self._until(loss.at)}"
            for loss in self.lost
        }
        for suspicion in self.suspicions:
            if suspicion.confirmed:
                said = self.tell(suspicion).partition(": ")[2]
                reasons[suspicion.node] = f"{said}; avoided until {self._until(suspicion.at)}"
        return reasons

    def worth_a_trial(self, run_id: str) -> str:
        """The nodes without which a run that has just failed is to be tried again, as a list; empty
        for none: it may be at fault, or another run is being tried already."""
        nodes = []
        for suspicion in self.suspicions:
            if run_id not in suspicion.run_ids:
                continue
            if (
                suspicion.confirmed
                or self._trials.setdefault((suspicion.node, suspicion.kind), run_id) == run_id
            ):
                nodes.append(suspicion.node)
        return ",".join(nodes)

    def avoided(self) -> list[str]:
        """The nodes that jobs are kept off, those first that failed last."""
        self._forget()
        times: dict[str, float] = {}
        for node, at in (
            *((loss.node, loss.at) for loss in self.lost),
            *((suspicion.node, suspicion.at) for suspicion in self.suspicions),
        ):
            times[node] = max(at, times.get(node, 0.0))
        return sorted(times, key=lambda node: -times[node])

    def without(self, shape: Shape, accepted: Callable[[Shape], bool]) -> Shape:
        """A request that leaves out the nodes that are avoided, as many as ``accepted`` allows,
        those first that failed last."""
        for node in self.avoided():
            if node in expand(shape.exclude):
                continue
            less = replace(shape, exclude=joined(shape.exclude, node))
            if accepted(less):
                shape = less
        return shape

    def _until(self, at: float) -> str:
        return datetime.fromtimestamp(at + AVOID_S).astimezone().strftime("%Y-%m-%d %H:%M")
