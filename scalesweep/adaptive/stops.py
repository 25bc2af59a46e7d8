"""Series of which larger counts are left out: what was decided, and what waits for a decision.

With ``stop: {when: "efficiency < 0.3"}`` an experiment's counts are measured one after the other,
the smallest first. After each the series is looked at (``adaptive.stop_look``); once a count is
clearly on that side of the limit, larger ones are left out: their points are excluded, with the
evidence as the reason, unless they have results already. A decision is kept next to the runs and
holds as long as the results that it rests on are there, unchanged, and the rule is the same.

The Snakefile is parsed with this, so it imports nothing heavy.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.stop_rule import StopRule
from scalesweep.core.files import (
    canonical_json,
    digest_of,
)
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState
from scalesweep.state.sealed_json import read_sealed, write_sealed
from scalesweep.state.stock import take_stock

STOPS = ".stops.json"  # in the folder of a site's runs
_FORMAT = 1


class KeptStop(NamedTuple):
    """What the last look at a series said.

    ``seen``: digest of the rule and of the runs that it was made of; ``rule``, as it is written;
    ``beyond``: the count beyond which none is measured, None for no decision; ``reason``: in words;
    ``evidence``: the runs that it rests on, with the stamps of their files.
    """

    seen: str
    rule: str
    beyond: int | None
    reason: str
    evidence: list[list[str]]


class Scale(NamedTuple):
    """A count of a series: its runs by repeat, and their states."""

    ranks: int
    runs: tuple[Run, ...]
    states: tuple[RunState, ...]


@dataclass(frozen=True)
class StopSeries:
    """A series of an experiment with ``stop``, its counts from the smallest.

    ``name``: what is decided is kept under; ``seen``: digest of all that there is to look at;
    ``kept``: what the last look said, ``stopped`` the decision that holds.
    """

    name: str
    experiment: Experiment
    rule: StopRule
    scales: tuple[Scale, ...]
    seen: str
    kept: KeptStop | None
    stopped: KeptStop | None

    @property
    def due(self) -> bool:
        """Whether there is something of it that was not looked at, and nothing is decided."""
        looked = self.kept is not None and self.kept.seen == self.seen
        return (
            not looked
            and self.stopped is None
            and any(state.status == Status.DONE for scale in self.scales for state in scale.states)
        )

    @property
    def last(self) -> float:
        """The count beyond which none is measured; infinite without a decision."""
        beyond = self.stopped.beyond if self.stopped else None
        return math.inf if beyond is None else beyond

    @property
    def reason(self) -> str:
        """Why larger counts are left out; empty without a decision."""
        return self.stopped.reason if self.stopped else ""

    @property
    def beyond(self) -> list[Scale]:
        """The counts that are left out."""
        return [scale for scale in self.scales if scale.ranks > self.last]


def plan_stops(
    campaign: Campaign, remember: bool = True
) -> tuple[Campaign, tuple[StopSeries, ...]]:
    """The campaign without the larger counts of series that were stopped, and the series.

    ``remember`` as in ``run_state.scan``.
    """
    ruled = [experiment for experiment in campaign.experiments if experiment.stop]
    if not ruled:
        return campaign, ()
    runs = {run.run_id: (experiment, run) for experiment in ruled for run in experiment.runs}
    states = take_stock(campaign, runs, remember=remember)
    kept = _read(campaign.runs_folder / STOPS)
    series = [series for experiment in ruled for series in _series_of(experiment, states, kept)]
    stay = {run_id for run_id, state in states.items() if state.settled}
    left_out: dict[str, dict[int, str]] = {}  # by experiment: ids of point objects -> reason
    for stopping in series:
        for scale in stopping.beyond:
            points = left_out.setdefault(stopping.experiment.name, {})
            points |= {id(run.point): stopping.reason for run in scale.runs}
    gone = {
        experiment.name: [(point, reasons[id(point)]) for point in _gone(experiment, reasons, stay)]
        for experiment in ruled
        if (reasons := left_out.get(experiment.name))
    }
    return _without(campaign, left_out, gone, stay), tuple(series)


def held_runs(series: Iterable[StopSeries], campaign: Campaign) -> frozenset[str]:
    """The runs of a campaign that wait until smaller counts of their series have been measured, or
    have failed."""
    planned = campaign.unique_runs().keys()
    held: set[str] = set()
    for stopping in series:
        waiting = False
        for scale in stopping.scales:
            open_runs = {
                run.run_id
                for run, state in zip(scale.runs, scale.states, strict=True)
                if run.run_id in planned and not state.settled and state.status != Status.FAILED
            }
            if waiting:
                held |= open_runs
            # What there is of a smaller count was not looked at: a look comes first.
            unseen = stopping.due and any(state.status == Status.DONE for state in scale.states)
            waiting = waiting or bool(open_runs) or unseen
    return _held(campaign, held)


def stopped_at(campaign: Campaign) -> Mapping[str, Callable[[Mapping[str, Any]], str]]:
    """By experiment why its ``stop`` leaves a point out, planned or not; empty where it does not.

    Nothing is remembered.
    """
    reasons: dict[str, Callable[[Mapping[str, Any]], str]] = {}
    _, series = plan_stops(campaign, remember=False)
    for experiment in campaign.experiments:
        mine = [series for series in series if series.experiment is experiment and series.stopped]
        names = _telling(experiment) if mine else []
        by_key = {_key(series.scales[0].runs[0].point, names): series for series in mine}
        reasons[experiment.name] = partial(_why, by_key, names)
    return reasons


def _why(by_key: Mapping[str, StopSeries], names: Sequence[str], point: Mapping[str, Any]) -> str:
    series = by_key.get(_key(point, names))
    if series is None or series.experiment.benchmark.scale_of(point) <= series.last:
        return ""
    return series.reason


def _key(point: Mapping[str, Any], names: Sequence[str]) -> str:
    return canonical_json([point[name] for name in names])


def keep_stops(campaign: Campaign, looks: Mapping[str, KeptStop]) -> None:
    """Keep what was decided of series, by their names, next to what is known of others.

    Raises OSError.
    """
    path = campaign.runs_folder / STOPS
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, _FORMAT, {"series": {**_read(path), **looks}})


def _read(path: Path) -> dict[str, KeptStop]:
    """Decisions by series; none where the file is not there, not whole or of another format."""
    try:
        series = read_sealed(path, _FORMAT).get("series", {})
        return {name: KeptStop._make(series) for name, series in series.items()}
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return {}


def _series_of(
    experiment: Experiment, states: Mapping[str, RunState], kept: Mapping[str, KeptStop]
) -> Iterable[StopSeries]:
    """The series of an experiment: points that differ in the count, and what follows it, alone."""
    benchmark, rule = experiment.benchmark, experiment.stop
    assert rule is not None
    names = _telling(experiment)
    by_key: dict[str, dict[int, list[Run]]] = {}
    for run in experiment.runs:
        counts = by_key.setdefault(_key(run.point, names), {})
        counts.setdefault(benchmark.scale_of(run.point), []).append(run)
    for counts in by_key.values():
        scales = tuple(
            Scale(count, tuple(runs), tuple(states[run.run_id] for run in runs))
            for count, runs in sorted(counts.items())
        )
        name = f"{experiment.name}/{scales[0].runs[0].run_id}"
        here = {
            run.run_id: s for scale in scales for run, s in zip(scale[1], scale[2], strict=True)
        }
        known: list[Any] = [
            [i, s.status, s.stamp] for i, s in here.items() if s.status != Status.NEW
        ]
        seen = digest_of([rule.text, experiment.main_metric, known])
        look = kept.get(name)
        holds = (
            look is not None
            and look.beyond is not None
            and look.rule == rule.text
            and all(
                run_id in here and (here[run_id].status, here[run_id].stamp) == (Status.DONE, stamp)
                for run_id, stamp in look.evidence
            )
        )
        yield StopSeries(name, experiment, rule, scales, seen, look, look if holds else None)


def _telling(experiment: Experiment) -> list[str]:
    """Varying parameters whose values tell one series from another (as the tables have it)."""
    benchmark = experiment.benchmark
    work = benchmark.size_parameters if experiment.scaling == "strong" else frozenset()
    along = {"ranks", benchmark.scale, *work}
    return [
        name
        for name in experiment.axes
        if name not in along and name in experiment.points[0] and _varies(experiment, name)
    ]


def _varies(experiment: Experiment, name: str) -> bool:
    """Whether a parameter has several values at one count; else it follows the count."""
    values: dict[int, set[str]] = {}
    for point in experiment.points:
        count = experiment.benchmark.scale_of(point)
        values.setdefault(count, set()).add(canonical_json(point[name]))
    return any(len(different) > 1 for different in values.values())


def _gone(
    experiment: Experiment, reasons: Mapping[int, str], stay: Set[str]
) -> list[Mapping[str, Any]]:
    """The points of an experiment that are left out and have no run that stays."""
    there = {id(run.point) for run in experiment.runs if run.run_id in stay}
    return [p for p in experiment.points if id(p) in reasons and id(p) not in there]


def _without(
    campaign: Campaign,
    left_out: Mapping[str, Mapping[int, str]],
    gone: Mapping[str, Sequence[tuple[Mapping[str, Any], str]]],
    stay: Set[str],
) -> Campaign:
    """The campaign without what is left out, but for the runs that ``stay``; the points that are
    ``gone`` are listed as excluded."""
    experiments = []
    for experiment in campaign.experiments:
        if reasons := left_out.get(experiment.name):
            runs = tuple(
                run for run in experiment.runs if id(run.point) not in reasons or run.run_id in stay
            )
            there = {id(run.point) for run in runs}
            dropped = {run.run_id for run in experiment.runs} - {run.run_id for run in runs}
            experiments.append(
                replace(
                    experiment,
                    runs=runs,
                    points=tuple(point for point in experiment.points if id(point) in there),
                    profiles=tuple(run for run in experiment.profiles if id(run.point) in there),
                    left_out=experiment.left_out | dropped,
                    excluded=(*experiment.excluded, *gone[experiment.name]),
                )
            )
        else:
            experiments.append(experiment)
    return replace(campaign, experiments=tuple(experiments))


def _held(campaign: Campaign, held: Collection[str]) -> frozenset[str]:
    """These runs, but for those that another experiment asks for; profiles of their points; and
    what the control point is measured between them."""
    if not held:
        return frozenset()
    asked = {
        run.run_id
        for experiment in campaign.experiments
        if not experiment.stop
        for run in experiment.runs
    }
    held_ids = set(held) - asked
    points = {
        id(run.point)
        for experiment in campaign.experiments
        for run in experiment.runs
        if run.run_id in held_ids
    }
    held_ids |= {
        run.run_id
        for experiment in campaign.experiments
        if experiment.stop
        for run in experiment.profiles
        if id(run.point) in points
    }
    positions = campaign.positions()
    first = min((positions[run_id] for run_id in held_ids if run_id in positions), default=0)
    held_ids |= {
        run.run_id
        for experiment in campaign.experiments
        if experiment.control
        for run in experiment.runs
        if first and positions[run.run_id] > first
    }
    return frozenset(held_ids)
