"""Series of which larger counts are left out by what smaller ones have measured.

With ``stop: {when: "efficiency < 0.3"}`` an experiment's counts are measured one after the other,
the smallest first. Once a count is clearly below the limit, larger ones are left out:
their points are excluded, with the evidence as the reason, unless they have results already.
Clearly: the 95 % interval of the efficiency, by the mean of its repeats against that of the
smallest count, lies wholly below the limit. With one repeat there is no interval and no decision.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scalesweep.adaptive.measured import Measured, metric_of, values_of
from scalesweep.analysis.metrics import EXTENSIVE, QUANTITIES, kind_of
from scalesweep.analysis.repeat_rule import COVERAGE, level_of
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import counted, number
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState

if TYPE_CHECKING:
    from scalesweep.analysis.stats import Estimate

Known = Mapping[str, Measured]
Values = Mapping[str, float]  # of a metric, by run


@dataclass(frozen=True)
class StopSeries:
    """A series of an experiment with ``stop``: its runs by count, from the smallest.

    ``last``: the count beyond which none is measured, infinite without a decision; ``reason``: in
    words.
    """

    experiment: Experiment
    counts: Mapping[int, Sequence[Run]]
    last: float
    reason: str


def stop_series(experiment: Experiment, known: Known) -> list[StopSeries]:
    """The series of an experiment: points that differ in the count, and what follows it, alone."""
    benchmark = experiment.benchmark
    work = benchmark.size_parameters if experiment.scaling == "strong" else frozenset()
    along = {"ranks", benchmark.scale, *work}
    axes = [n for n in experiment.axes if n not in along and n in experiment.points[0]]
    names = [name for name in axes if _varies(experiment, name)]
    by_key: dict[str, dict[int, list[Run]]] = {}
    for run in experiment.runs:
        key = canonical_json([run.point[name] for name in names])
        by_key.setdefault(key, {}).setdefault(benchmark.scale_of(run.point), []).append(run)
    series = [dict(sorted(counts.items())) for counts in by_key.values()]
    return [StopSeries(experiment, runs, *_decide(experiment, runs, known)) for runs in series]


def _decide(
    experiment: Experiment, counts: Mapping[int, Sequence[Run]], known: Known
) -> tuple[float, str]:
    """The count beyond which none is measured, and why."""
    rule = experiment.stop
    assert rule is not None
    mine = {run.run_id: known[run.run_id] for runs in counts.values() for run in runs
            if run.run_id in known}  # fmt: skip
    metric = _metric(experiment, mine)
    values = {
        count: values_of(metric, {r.run_id: mine[r.run_id] for r in runs if r.run_id in mine})
        for count, runs in counts.items()
    }
    level = level_of(experiment.until_precise.least) if experiment.until_precise else COVERAGE
    measured = [(count, of) for count, of in values.items() if of]
    for count, of in measured[1:]:
        reached = _efficiency(experiment, metric, mine, measured[0], (count, of), level)
        if reached.low is not None and reached.high is not None and reached.high < rule.limit:
            value, low, high = map(number, (reached.value, reached.low, reached.high))
            return count, (
                f"{rule.text} at {experiment.benchmark.scale} {count:,}: efficiency {value} "
                f"(95 %: {low} to {high}, {counted(len(of), 'repeat')})"
            )
    return math.inf, ""


def _metric(experiment: Experiment, known: Known) -> str:
    """The metric of efficiency: the first that there is of those that the experiment is about;
    empty if that has none, as a bandwidth or a latency has."""
    main = [experiment.main_metric] if experiment.main_metric else []
    metric = metric_of((*main, "total_throughput", *experiment.benchmark.metrics), known)
    said = next((run.meanings[metric] for run in known.values() if metric in run.meanings), None)
    if metric in QUANTITIES or said is None:
        return metric
    kinds, scaling = experiment.benchmark.kinds, experiment.scaling
    kind = kind_of(metric, said["unit"], said["better"], kinds, scaling, main=True)
    return metric if kind == EXTENSIVE else ""


def _efficiency(
    experiment: Experiment,
    metric: str,
    known: Known,
    base: tuple[int, Values],
    other: tuple[int, Values],
    level: float,
) -> "Estimate":
    """Efficiency of a count against the smallest: the ratio of rates of a rank, and in weak scaling
    of times; of rates of all ranks, and in strong scaling of times, divided by that of counts."""
    from scalesweep.analysis.stats import ratio_of_means, stated_ratio_error  # NumPy

    stated = next((run.meanings[metric] for run in known.values() if metric in run.meanings), {})
    quantity = QUANTITIES.get(metric)
    better = quantity.better if quantity else stated.get("better", "higher")
    scope = quantity.scope if quantity else stated.get("scope", "total")
    counts = other[0] / base[0]
    speeds_up = scope == "total" if better == "higher" else experiment.scaling == "strong"
    sides = [list(other[1].values()), list(base[1].values())]
    top, bottom = sides if better == "higher" else reversed(sides)
    return ratio_of_means(
        top, bottom, stated_ratio_error(top, bottom), level, per=counts if speeds_up else 1
    )


def without_stopped(
    campaign: Campaign, series: Iterable[StopSeries], states: Mapping[str, RunState]
) -> Campaign:
    """The campaign without the counts that are left out, but for runs that have a result; points
    that are gone are listed as excluded."""
    left_out: dict[str, dict[int, str]] = {}  # by experiment: ids of point objects -> reason
    for each in series:
        for count, runs in each.counts.items():
            if count > each.last:
                points = left_out.setdefault(each.experiment.name, {})
                points |= {id(run.point): each.reason for run in runs}
    stay = {run_id for run_id, state in states.items() if state.settled}
    return replace(
        campaign,
        experiments=tuple(
            _without(e, left_out[e.name], stay) if e.name in left_out else e
            for e in campaign.experiments
        ),
    )


def _without(experiment: Experiment, reasons: Mapping[int, str], stay: Set[str]) -> Experiment:
    runs = tuple(r for r in experiment.runs if id(r.point) not in reasons or r.run_id in stay)
    there = {id(run.point) for run in runs}
    gone = [point for point in experiment.points if id(point) not in there]
    dropped = {run.run_id for run in experiment.runs} - {run.run_id for run in runs}
    return replace(
        experiment,
        runs=runs,
        points=tuple(point for point in experiment.points if id(point) in there),
        profiles=tuple(run for run in experiment.profiles if id(run.point) in there),
        left_out=experiment.left_out | dropped,
        excluded=(*experiment.excluded, *((point, reasons[id(point)]) for point in gone)),
    )


def held_runs(
    series: Iterable[StopSeries], campaign: Campaign, states: Mapping[str, RunState]
) -> frozenset[str]:
    """The runs of a campaign that wait until smaller counts of their series have been measured, or
    have failed."""
    planned = campaign.unique_runs().keys()
    held: set[str] = set()
    for each in series:
        waiting = False
        for runs in each.counts.values():
            mine = {run.run_id: states[run.run_id] for run in runs if run.run_id in planned}
            left = {i for i, s in mine.items() if not s.settled and s.status != Status.FAILED}
            held |= left if waiting else set()
            waiting = waiting or bool(left)
    return _with_companions(campaign, held) if held else frozenset()


def _with_companions(campaign: Campaign, held: Collection[str]) -> frozenset[str]:
    """These runs, but for those that another experiment asks for; profiles of their points; and
    what the control point is measured between them."""
    stopping = [experiment for experiment in campaign.experiments if experiment.stop]
    others = [experiment for experiment in campaign.experiments if not experiment.stop]
    ids = set(held) - {run.run_id for experiment in others for run in experiment.runs}
    points = {id(r.point) for e in campaign.experiments for r in e.runs if r.run_id in ids}
    ids |= {r.run_id for e in stopping for r in e.profiles if id(r.point) in points}
    positions = campaign.positions()
    first = min((positions[i] for i in ids if i in positions), default=math.inf)
    controls = (run.run_id for e in others if e.control for run in e.runs)
    return frozenset(ids | {run_id for run_id in controls if positions[run_id] > first})


def _varies(experiment: Experiment, name: str) -> bool:
    """Whether a parameter has several values at one count, which tells series apart (as the tables
    have it); else it follows the count."""
    values: dict[int, set[str]] = {}
    for point in experiment.points:
        count = experiment.benchmark.scale_of(point)
        values.setdefault(count, set()).add(canonical_json(point[name]))
    return any(len(different) > 1 for different in values.values())
