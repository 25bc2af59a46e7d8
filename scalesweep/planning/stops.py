"""Series of which larger counts are left out: what was decided, and what waits for a decision.

With ``stop: {when: "efficiency < 0.3"}`` an experiment's counts are measured one after the other,
the smallest first. After each the series is looked at (``tables.stops``); once a count is clearly
on that side of the limit, larger ones are left out: their points are excluded, with the evidence as
the reason, unless they have results already. A decision is kept next to the runs and holds as long
as the results that it rests on are there, unchanged, and the rule is the same.

The Snakefile is parsed with this, so it imports nothing heavy.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, replace
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
from scalesweep.planning.run_state import DONE, NEW, RunState
from scalesweep.planning.sealed_json import read_sealed, write_sealed
from scalesweep.planning.stock import take_stock

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
            and any(state.status == DONE for scale in self.scales for state in scale.states)
        )


@dataclass(frozen=True)
class Stopped:
    """A campaign without what its experiments leave out, their series, and the runs that wait until
    smaller counts have been measured."""

    campaign: Campaign
    series: tuple[StopSeries, ...] = ()
    held: frozenset[str] = frozenset()


def plan_stops(campaign: Campaign, remember: bool = True, begun: Set[str] = frozenset()) -> Stopped:
    """The campaign without the larger counts of series that were stopped.

    ``remember`` as in ``run_state.scan``. ``begun``: runs that this call has started; they are over
    and stay.
    """
    ruled = [one for one in campaign.experiments if one.stop]
    if not ruled:
        return Stopped(campaign)
    runs = {run.run_id: (one, run) for one in ruled for run in one.runs}
    states = take_stock(campaign, runs, remember=remember)
    kept = _read(campaign.runs_folder / STOPS)
    series = [found for one in ruled for found in _series_of(one, states, kept)]
    left_out: dict[str, dict[int, str]] = {}  # by experiment: ids of point objects -> reason
    held: set[str] = set()
    for one in series:
        waiting = False
        for scale in one.scales:
            open_runs = {
                run.run_id
                for run, state in zip(scale.runs, scale.states, strict=True)
                if not state.settled and run.run_id not in begun
            }
            if one.stopped and one.stopped.beyond is not None and scale.ranks > one.stopped.beyond:
                points = left_out.setdefault(one.experiment.name, {})
                points |= {id(run.point): one.stopped.reason for run in scale.runs}
                continue
            if waiting:
                held |= open_runs
            # What there is of a smaller count was not looked at: a look comes first.
            unseen = one.due and any(state.status == DONE for state in scale.states)
            waiting = waiting or bool(open_runs) or unseen
    stopped = _without(campaign, left_out, states, begun)
    return Stopped(stopped, tuple(series), _held(stopped, held, begun))


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
        return {name: KeptStop._make(one) for name, one in series.items()}
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
        key = canonical_json([run.point[name] for name in names])
        counts = by_key.setdefault(key, {})
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
        known: list[Any] = [[i, s.status, s.stamp] for i, s in here.items() if s.status != NEW]
        seen = digest_of([rule.text, experiment.main_metric, known])
        look = kept.get(name)
        holds = (
            look is not None
            and look.beyond is not None
            and look.rule == rule.text
            and all(
                run_id in here and (here[run_id].status, here[run_id].stamp) == (DONE, stamp)
                for run_id, stamp in look.evidence
            )
        )
        yield StopSeries(name, experiment, rule, scales, seen, look, look if holds else None)


def _telling(experiment: Experiment) -> list[str]:
    """Varying parameters whose values tell one series from another (as the tables have it)."""
    benchmark = experiment.benchmark
    work = benchmark.work_parameters if experiment.scaling == "strong" else frozenset()
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
    return any(len(found) > 1 for found in values.values())


def _without(
    campaign: Campaign,
    left_out: Mapping[str, Mapping[int, str]],
    states: Mapping[str, RunState],
    begun: Set[str],
) -> Campaign:
    """The campaign without these points, but for what has a result of them or was begun."""
    experiments = []
    for one in campaign.experiments:
        if reasons := left_out.get(one.name):
            runs = tuple(
                run
                for run in one.runs
                if id(run.point) not in reasons or states[run.run_id].settled or run.run_id in begun
            )
            there = {id(run.point) for run in runs}
            gone = [point for point in one.points if id(point) not in there]
            dropped = {run.run_id for run in one.runs} - {run.run_id for run in runs}
            experiments.append(
                replace(
                    one,
                    runs=runs,
                    points=tuple(point for point in one.points if id(point) in there),
                    profiles=tuple(run for run in one.profiles if id(run.point) in there),
                    left_out=one.left_out | dropped,
                    excluded=(*one.excluded, *((point, reasons[id(point)]) for point in gone)),
                )
            )
        else:
            experiments.append(one)
    return replace(campaign, experiments=tuple(experiments))


def _held(campaign: Campaign, held: Collection[str], begun: Set[str]) -> frozenset[str]:
    """These runs, but for those that another experiment asks for; profiles of their points; and
    what the control point is measured between them."""
    if not held:
        return frozenset()
    asked = {run.run_id for one in campaign.experiments if not one.stop for run in one.runs}
    found = set(held) - asked
    points = {
        id(run.point) for one in campaign.experiments for run in one.runs if run.run_id in found
    }
    found |= {
        run.run_id
        for one in campaign.experiments
        if one.stop
        for run in one.profiles
        if id(run.point) in points
    }
    positions = campaign.positions()
    first = min((positions[run_id] for run_id in found if run_id in positions), default=0)
    found |= {
        run.run_id
        for one in campaign.experiments
        if one.control
        for run in one.runs
        if first and positions[run.run_id] > first
    }
    return frozenset(found - begun)
