"""How long a run that is still to be done will take, from those that are done.

Snakemake's parse step lives on this module: it imports nothing heavy, and its cost grows with the
number of runs, not with its square.
"""

import csv
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.csv_cells import read_rows
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState

# What an estimate rests on, the best first.
SAME_POINT = "same point"
SAME_RANKS = "same ranks"
PREDICTED = "predicted"
SCALED = "scaled by work"
CAMPAIGN = "campaign"
TIMED_OUT = "timeout"
UNKNOWN = ""
BASES = (SAME_POINT, SAME_RANKS, PREDICTED, SCALED, CAMPAIGN, TIMED_OUT, UNKNOWN)

_Key = tuple[Any, ...]
_Number = TypeVar("_Number", int, float)


class Estimates:
    """Expected wall times of a campaign's runs, from its finished, measured ones.

    From the most similar ones:

    1. the same point;
    2. the same benchmark, form of data, rank count and samples that a rank reads in the whole run;
    3. the prediction of the run's series, in the tables of an earlier call (table ``runtimes``);
    4. the same benchmark and form of data, scaled by the samples that a rank reads in the whole
       run: what a run takes outside its timed part stays, the rest grows with them. Taken from the
       nearest rank count there, then from the nearest amount of work (both by ratio; of two that
       are equally near, the larger);
    5. the campaign's ``expected_minutes``.

    In 2 and 4 runs with the same settings come before runs that differ in some, which count only
    where the benchmark declares its work: without, nothing says that a run of other parameter
    values does as much. Settings are all parameters but the rank count, those that say how much is
    read, and the form of the data (the parameters that identify the data set). Runs on another
    form of data never count: their samples are not the same work. Of several runs that are as good,
    the median.

    A point of which a run was ended at its time limit takes at least that long.
    """

    def __init__(self, campaign: Campaign, states: Mapping[str, RunState]) -> None:
        """Index the finished runs among ``states``, by benchmark and likeness."""
        self._readers: dict[str, _Reader] = {}
        # Answers by the id of a point, which repeats share; the point is kept, and so is its id.
        self._known: dict[int, tuple[Mapping[str, Any], float | None, str]] = {}
        self._points: dict[_Key, list[RunState]] = {}
        self._groups: dict[_Key, _Group] = {}
        self._tables = campaign.results / "tables"
        # By experiment the expected seconds of runs and their upper bound, by run id.
        self._predicted: dict[str, dict[str, tuple[float, float]]] = {}
        # What runs had that were ended at their time limit, by point.
        self._least_s: dict[_Key, float] = {}
        for run_id, (experiment, run) in campaign.unique_runs().items():
            state = states[run_id]
            if state.given_s is not None:
                point = self._traits(experiment.benchmark, run.point).point
                self._least_s[point] = max(state.given_s, self._least_s.get(point, 0.0))
            if state.status != Status.DONE or not state.wall_s or state.source != "measured":
                continue
            traits = self._traits(experiment.benchmark, run.point)
            self._points.setdefault(traits.point, []).append(state)
            for key in traits.groups:
                if key not in self._groups:
                    self._groups[key] = _Group()
                self._groups[key].add(traits.ranks, traits.work, state)

    def seconds(self, experiment: Experiment, run: Run) -> float | None:
        """Expected wall time of the run's program in seconds; None if nothing is known."""
        return self._estimate(experiment, run)[0]

    def basis(self, experiment: Experiment, run: Run) -> str:
        """What ``seconds`` rests on: one of ``BASES``."""
        return self._estimate(experiment, run)[1]

    def predicted(self, experiment: Experiment, run: Run) -> tuple[float, float] | None:
        """Expected seconds and their upper bound by the series of the run; None where unknown."""
        if experiment.name not in self._predicted:
            path = self._tables / experiment.name / "runtimes.csv"
            self._predicted[experiment.name] = _read_runtimes(path)
        return self._predicted[experiment.name].get(run.run_id)

    def _estimate(self, experiment: Experiment, run: Run) -> tuple[float | None, str]:
        known = self._known.get(id(run.point))
        if known is None:
            known = (run.point, *self._from_runs(experiment.benchmark, run.point))
            self._known[id(run.point)] = known
        _, seconds, basis = known
        if basis not in (SAME_POINT, SAME_RANKS) and (ahead := self.predicted(experiment, run)):
            seconds, basis = ahead[0], PREDICTED
        if seconds is None and experiment.expected_minutes is not None:
            seconds, basis = experiment.expected_minutes * 60, CAMPAIGN
        if self._least_s:
            point = self._traits(experiment.benchmark, run.point).point
            least_s = self._least_s.get(point, 0.0)
            if least_s > (seconds or 0.0):
                return least_s, TIMED_OUT
        return seconds, basis

    def _from_runs(
        self, benchmark: Benchmark, point: Mapping[str, Any]
    ) -> tuple[float | None, str]:
        traits = self._traits(benchmark, point)
        if traits.point in self._points:
            return _median_s(self._points[traits.point]), SAME_POINT
        usable = traits.groups if benchmark.work is not None else traits.groups[:1]
        groups = [self._groups[key] for key in usable if key in self._groups]
        for group in groups:
            seconds = group.equal_runs(traits.ranks, traits.work)
            if seconds is not None:
                return seconds, SAME_RANKS
        for group in groups if benchmark.work is not None else ():
            seconds = group.scaled(traits.ranks, traits.work)
            if seconds is not None:
                return seconds, SCALED
        return None, UNKNOWN

    def _traits(self, benchmark: Benchmark, point: Mapping[str, Any]) -> "_Traits":
        if benchmark.name not in self._readers:
            self._readers[benchmark.name] = _Reader(benchmark)
        return self._readers[benchmark.name].traits(point)


class _Traits(NamedTuple):
    """What matters here of a point.

    ``work``: samples that a rank reads in the whole run; of a benchmark that does not say, its
    epochs, which tell runs apart but scale nothing. ``groups``: keys of the runs to learn from,
    first those with the same settings, then those with any.
    """

    point: _Key
    ranks: int
    work: float
    groups: tuple[_Key, _Key]


class _Reader:
    """Reads the traits of one benchmark's points."""

    def __init__(self, benchmark: Benchmark) -> None:
        workload = (name for name, p in benchmark.parameters.items() if p.workload)
        form = {*(benchmark.data.parameters if benchmark.data else ()), *workload}
        size = {"ranks", "epochs", *benchmark.work_parameters} & benchmark.parameters.keys()
        self._benchmark = benchmark
        self._form = _getter(benchmark, form)
        self._size = _getter(benchmark, size - form)
        self._settings = _getter(benchmark, benchmark.parameters.keys() - size - form)
        self._totals: dict[_Key, int | None] = {}
        # Short names for long keys, which would be hashed again and again.
        self._numbers: dict[_Key, int] = {}

    def traits(self, point: Mapping[str, Any]) -> _Traits:
        form, size = self._form(point), self._size(point)
        sized = (form, size)
        if sized not in self._totals:
            self._totals[sized] = self._benchmark.total_work(point)
        total = self._totals[sized]
        ranks, epochs = int(point["ranks"]), point.get("epochs") or 1
        any_settings = (self._benchmark.name, self._number(form), -1)
        settings = (*any_settings[:2], self._number(self._settings(point)))
        return _Traits(
            point=(settings, size),
            ranks=ranks,
            work=(1 if total is None else total / ranks) * epochs,
            groups=(settings, any_settings),
        )

    def _number(self, key: _Key) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _read_runtimes(path: Path) -> dict[str, tuple[float, float]]:
    """Expected seconds and upper bound by run id; nothing where there is no such table."""
    try:
        with path.open(newline="") as file:
            rows = [
                (row["run_id"], float(row["expected_s"]), float(row["high_s"]))
                for row in read_rows(file)
            ]
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return {}  # made again with the tables; until then other estimates do
    return {i: (s, high) for i, s, high in rows if 0 < s <= high < math.inf}


def _getter(benchmark: Benchmark, names: Set[str]) -> Callable[[Mapping[str, Any]], _Key]:
    """A function that gives the values of some parameters as a key; lists become text."""
    lists = sorted(name for name in names if "array" in benchmark.parameters[name].types)
    others = sorted(names - set(lists))
    if lists or not others:
        return lambda point: (*[point[n] for n in others], *[repr(point[n]) for n in lists])
    return itemgetter(*others, others[0])  # one name alone would not give a tuple


def _median_s(states: Sequence[RunState]) -> float:
    return median([state.wall_s or 0.0 for state in states])


class _Group:
    """Finished runs that may be used in place of each other, by rank count and work."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, float], list[RunState]] = {}
        # What is made of a cell when it is asked for: seconds; fixed seconds and those of the work.
        self._medians: dict[tuple[int, float], float] = {}
        self._parts: dict[tuple[int, float], tuple[float, float]] = {}

    def add(self, ranks: int, work: float, state: RunState) -> None:
        self._cells.setdefault((ranks, work), []).append(state)

    def equal_runs(self, ranks: int, work: float) -> float | None:
        """Seconds of the runs of just so many ranks and so much work."""
        cell = (ranks, work)
        if cell in self._cells and cell not in self._medians:
            self._medians[cell] = _median_s(self._cells[cell])
        return self._medians.get(cell)

    def scaled(self, ranks: int, work: float) -> float | None:
        """Seconds of the nearest runs, scaled to so much work."""
        if not self._works:
            return None
        ranks = _nearest(self._ranks, ranks)
        nearest = _nearest(self._works[ranks], work)
        cell = (ranks, nearest)
        if cell not in self._parts:
            self._parts[cell] = _parts(self._cells[cell])
        fixed_s, growing_s = self._parts[cell]
        return fixed_s + growing_s * work / nearest

    @cached_property
    def _works(self) -> dict[int, list[float]]:
        """Ranks -> work of the runs that can be scaled, in order."""
        works: dict[int, list[float]] = {}
        for (ranks, work), states in sorted(self._cells.items(), key=itemgetter(0)):
            if work and any(state.fixed_s is not None for state in states):
                works.setdefault(ranks, []).append(work)
        return works

    @cached_property
    def _ranks(self) -> list[int]:
        return list(self._works)


def _parts(states: Sequence[RunState]) -> tuple[float, float]:
    """Median seconds outside the work and of the work, over the runs that record both."""
    known = [(s.wall_s or 0.0, s.fixed_s) for s in states if s.fixed_s is not None]
    fixed = [min(fixed_s, wall_s) for wall_s, fixed_s in known]
    growing = [wall_s - part for (wall_s, _), part in zip(known, fixed, strict=True)]
    return median(fixed), median(growing)


def _nearest(values: Sequence[_Number], value: float) -> _Number:
    """The nearest of sorted, positive values by ratio; the larger of two that are as near."""
    above = bisect_left(values, value)
    if above in (0, len(values)):
        return values[min(above, len(values) - 1)]
    low, high = values[above - 1], values[above]
    return high if high * low <= value * value else low
