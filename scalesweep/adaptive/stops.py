"""Series of which larger counts are left out by what smaller ones have measured.

With ``stop_below: 30 %`` an experiment's counts are measured one after the other,
the smallest first. Once a count is clearly below the limit, larger ones are left out:
their points are excluded, with the evidence as the reason, unless they have results already.
Clearly: the 95 % interval of the efficiency, by the mean of its repeats against that of the
smallest count, lies wholly below the limit. With one repeat there is no interval and no decision.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scalesweep.analysis.factors import series_parameters
from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import counted, number
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.profilers import split_name
from scalesweep.core.status import Status
from scalesweep.planning.run_order import positions
from scalesweep.state.run_state import RunState

if TYPE_CHECKING:
    from scalesweep.tables.points import ExperimentData, Point


@dataclass(frozen=True)
class StopSeries:
    """A series of an experiment with ``stop_below``: its runs by count, from the smallest.

    ``last``: the count beyond which none is measured, infinite without a decision; ``reason``: in
    words.
    """

    counts: Mapping[int, Sequence[Run]]
    last: float
    reason: str


def stop_series(
    experiment: Experiment, entry: PlanExperiment, data: "ExperimentData | None"
) -> list[StopSeries]:
    """The series of an experiment: points that differ in the count, and what follows it, alone.

    ``entry``: its entry in the plan, with the same runs; ``data``: what finished ones have
    measured.
    """
    names = series_parameters(entry)
    by_work = entry["scaling"] == "strong" and bool(entry["work"])

    def key(values: Mapping[str, Any], work: int | None) -> str:
        return canonical_json([*(values[name] for name in names), work if by_work else None])

    by_key: dict[str, dict[int, list[Run]]] = {}
    for run, planned in zip(experiment.runs, entry["runs"], strict=True):
        counts = by_key.setdefault(key(planned["point"], planned["work"]), {})
        counts.setdefault(planned["point"][entry["scale"]], []).append(run)
    below: dict[str, tuple[float, str]] = {}
    for point, reason in _points_below(experiment, data) if data else ():
        mine, count = key(point.values, point.work), point.values[entry["scale"]]
        below[mine] = min(below.get(mine, (math.inf, "")), (count, reason))
    return [
        StopSeries(dict(sorted(counts.items())), *below.get(mine, (math.inf, "")))
        for mine, counts in by_key.items()
    ]


def _points_below(experiment: Experiment, data: "ExperimentData") -> Iterator[tuple["Point", str]]:
    """The points whose efficiency, as the report has it, is clearly below the limit, and why."""
    from scalesweep.tables.comparisons import EFFICIENCY  # pandas
    from scalesweep.tables.points import point_id
    from scalesweep.tables.scaling import scaling_rows

    limit, points = experiment.keys.stop_below, {point_id(point): point for point in data.points()}
    assert limit is not None
    for row in scaling_rows(data, data.points()):
        judged = row.quantity == EFFICIENCY and row.decides_high is not None
        if not judged or row.phase == EPOCH_PHASES[0] or row.ratio is None:
            continue
        point, base = points[row.point_id or ""], points[row.base_id or ""]
        value, low, high = row.ratio.value, row.ratio.low, row.ratio.high
        repeats = min(point.rows.size, base.rows.size)
        if repeats > 1 and low is not None and high is not None and high < limit:
            yield (
                point,
                (
                    f"efficiency < {limit:g} at {data.scale} {point.values[data.scale]:,}: "
                    f"efficiency {number(value)} (95 %: {number(low)} to {number(high)}, "
                    f"{counted(point.rows.size, 'repeat')})"
                ),
            )


def without_stopped(
    campaign: Campaign, series: Iterable[StopSeries], states: Mapping[str, RunState]
) -> Campaign:
    """The campaign without the counts that are left out, but for runs that have a result; points
    that are gone are listed as excluded."""
    reasons = {
        id(run.point): each.reason
        for each in series
        for count, runs in each.counts.items()
        for run in runs
        if count > each.last
    }
    stay = {run_id for run_id, state in states.items() if state.settled}
    experiments = (
        _without(e, reasons, stay) if e.keys.stop_below else e for e in campaign.experiments
    )
    return replace(campaign, experiments=tuple(experiments))


def _without(experiment: Experiment, reasons: Mapping[int, str], stay: Set[str]) -> Experiment:
    runs = tuple(r for r in experiment.runs if id(r.point) not in reasons or r.run_id in stay)
    there = {id(run.point) for run in runs}
    gone = [point for point in experiment.points if id(point) not in there]
    return replace(
        experiment,
        runs=runs,
        points=tuple(point for point in experiment.points if id(point) in there),
        profiles=tuple(run for run in experiment.profiles if id(run.point) in there),
        excluded=(*experiment.excluded, *((point, reasons[id(point)]) for point in gone)),
    )


def held_runs(
    series: Iterable[StopSeries], campaign: Campaign, states: Mapping[str, RunState]
) -> frozenset[str]:
    """The runs of a campaign that wait until smaller counts of their series have been measured, or
    have failed; with their profiles, and what the control point is measured between them."""
    over = {i for i, state in states.items() if state.settled or state.status == Status.FAILED}
    left, held = campaign.unique_runs().keys() - over, set[str]()
    # A run of the control alone is awaited by none: it waits for them.
    own = {run.run_id for e in campaign.experiments if not e.control for run in e.runs}
    for each in series:
        waiting = False
        for runs in each.counts.values():
            mine = left & own & {run.run_id for run in runs}
            held |= mine if waiting else set()
            waiting = waiting or bool(mine)
    others = [experiment for experiment in campaign.experiments if not experiment.keys.stop_below]
    held -= {run.run_id for experiment in others for run in experiment.runs}
    held |= {run_id for run_id in left if split_name(run_id)[0] in held}
    places = positions(campaign)
    first = min((places[run_id] for run_id in held), default=math.inf)
    controls = {run.run_id for e in others if e.control for run in e.runs} - own
    return frozenset(held | {run_id for run_id in controls if places[run_id] > first})
