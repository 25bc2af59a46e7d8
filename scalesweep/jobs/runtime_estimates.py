"""How long a run that is still to be done will take, from those that are done.

Snakemake's parse step lives on this module: it imports nothing heavy, and its cost grows with the
number of runs, not with its square.
"""

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState

# What an estimate rests on, the best first.
SAME_POINT = "same point"
SCALED = "scaled by work"
CAMPAIGN = "campaign"
TIMED_OUT = "timeout"
UNKNOWN = ""
BASES = (SAME_POINT, SCALED, CAMPAIGN, TIMED_OUT, UNKNOWN)


class Estimates:
    """Expected wall times of a campaign's runs, from its finished, measured ones.

    From the first of these:

    1. runs of the same point, their median;
    2. runs of the same benchmark and data set on the nearest number of ranks (by ratio), scaled by
       the samples that a rank reads; only of a benchmark that declares its work;
    3. the campaign's ``expected_minutes``.

    A point of which a run was ended at its time limit takes at least that long.
    """

    def __init__(self, campaign: Campaign, states: Mapping[str, RunState]) -> None:
        """Index the finished runs among ``states``."""
        # Seconds of finished runs, and what runs had that were ended at their time limit, by point.
        self._points: dict[str, list[float]] = {}
        self._least_s: dict[str, float] = {}
        # By benchmark and data set, and rank count: seconds for each unit of work.
        self._groups: dict[str, dict[int, list[float]]] = {}
        for run_id, (experiment, run) in campaign.unique_runs().items():
            state, point = states[run_id], _key(experiment.benchmark, run.point)
            if state.given_s is not None:
                self._least_s[point] = max(state.given_s, self._least_s.get(point, 0.0))
            if state.status != Status.DONE or not state.wall_s or state.source != "measured":
                continue
            self._points.setdefault(point, []).append(state.wall_s)
            if work := _work(experiment.benchmark, run.point):
                group = self._groups.setdefault(_form(experiment.benchmark, run.point), {})
                group.setdefault(int(run.point["ranks"]), []).append(state.wall_s / work)

    def seconds(self, experiment: Experiment, run: Run) -> float | None:
        """Expected wall time of the run's program in seconds; None if nothing is known."""
        return self.estimate(experiment, run)[0]

    def estimate(self, experiment: Experiment, run: Run) -> tuple[float | None, str]:
        """The same, and what it rests on: one of ``BASES``."""
        point = _key(experiment.benchmark, run.point)
        seconds: float | None = None
        basis = UNKNOWN
        if point in self._points:
            seconds, basis = median(self._points[point]), SAME_POINT
        elif (scaled := self._scaled(experiment.benchmark, run.point)) is not None:
            seconds, basis = scaled, SCALED
        elif experiment.keys.expected_minutes is not None:
            seconds, basis = experiment.keys.expected_minutes * 60, CAMPAIGN
        least_s = self._least_s.get(point, 0.0)
        return (least_s, TIMED_OUT) if least_s > (seconds or 0.0) else (seconds, basis)

    def _scaled(self, benchmark: Benchmark, point: Mapping[str, Any]) -> float | None:
        """Seconds of the runs on the nearest number of ranks, scaled to the work of a point."""
        work, group = _work(benchmark, point), self._groups.get(_form(benchmark, point))
        if not work or not group:
            return None
        nearest = min(group, key=lambda ranks: abs(math.log(ranks / point["ranks"])))
        return median(group[nearest]) * work


def _key(benchmark: Benchmark, point: Mapping[str, Any]) -> str:
    return f"{benchmark.name} {sorted(point.items())!r}"


def _form(benchmark: Benchmark, point: Mapping[str, Any]) -> str:
    """What runs share whose work is of one kind: the benchmark, and what identifies its data."""
    names = {name for name, parameter in benchmark.parameters.items() if parameter.workload}
    names |= {*(benchmark.data.parameters if benchmark.data else ())}
    return f"{benchmark.name} {[point[name] for name in sorted(names)]!r}"


def _work(benchmark: Benchmark, point: Mapping[str, Any]) -> float | None:
    """Samples that a rank reads in the whole run; None where the benchmark does not say."""
    total = benchmark.total_work(point)
    return None if total is None else total / int(point["ranks"]) * (point.get("epochs") or 1)
