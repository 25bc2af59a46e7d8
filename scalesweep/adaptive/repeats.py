"""Points that are measured until they are precise: which of their repeats are planned so far.

What is planned follows from the runs that there are and from the last look at them, which
``adaptive.repeat_look`` makes and which is kept next to the runs. A look holds as long as the
states of the runs that it was made of do; so whatever was killed or deleted in between, the next
call goes on from what is on disk. Repeats that have been started are always planned, however few
are needed.

The Snakefile is parsed with this, so it imports nothing heavy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.analysis.repeat_rule import level_of
from scalesweep.config.campaign import Campaign, with_repeats
from scalesweep.config.campaign_keys import UntilPrecise
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.files import digest_of
from scalesweep.core.plan_format import PlanRepeated, PlanRepeats
from scalesweep.core.status import Status
from scalesweep.planning.adaptive_text import NEW as NOT_LOOKED_AT
from scalesweep.state.run_state import RunState
from scalesweep.state.sealed_json import read_sealed, write_sealed
from scalesweep.state.stock import take_stock

LOOKS = ".repeats.json"  # in the folder of a site's runs
_FORMAT = 1


class KeptLook(NamedTuple):
    """What a look said of a point (``analysis.sequential.Look``).

    ``seen``: digest of the rule and of the runs that it was made of; ``asked``: repeats that are
    planned since; ``width`` is None where there is no interval; ``metric`` is the one looked at,
    empty where no run has one.
    """

    seen: str
    asked: int
    state: str
    width: float | None
    expected: int
    metric: str


@dataclass(frozen=True)
class RepeatedPoint:
    """A point with every repeat that it may have, in order, and their states.

    ``asked``: repeats planned so far; ``look``: what was seen of it, None where its runs were not
    looked at as they are now; ``name``: what its looks are kept under.
    """

    name: str
    experiment: Experiment
    rule: UntilPrecise
    runs: tuple[Run, ...]
    states: tuple[RunState, ...]
    asked: int
    seen: str
    look: KeptLook | None

    @property
    def due(self) -> bool:
        """Whether there is something of it that was not looked at."""
        return self.look is None and any(state.status != Status.NEW for state in self.states)


def plan_points(campaign: Campaign, remember: bool) -> tuple[Campaign, tuple[RepeatedPoint, ...]]:
    """The campaign with the repeats of points that have no fixed number of them, and these."""
    open_ones = [experiment for experiment in campaign.experiments if experiment.until_precise]
    if not open_ones:
        return campaign, ()
    there = _names(campaign.runs_folder)
    most = {experiment.name: _most(experiment, there) for experiment in open_ones}
    widest = with_repeats(campaign, most)
    experiments = {
        experiment.name: experiment for experiment in widest.experiments if experiment.name in most
    }
    runs = {
        run.run_id: (experiment, run)
        for experiment in experiments.values()
        for run in experiment.runs
    }
    states = take_stock(campaign, runs, remember=remember)
    looks = _read(campaign.runs_folder / LOOKS)
    points = [
        _point(experiment, repeats, states, looks)
        for experiment in experiments.values()
        for repeats in _by_point(experiment)
    ]
    counts: dict[str, list[int]] = {}
    for point in points:
        counts.setdefault(point.experiment.name, []).append(point.asked)
    return with_repeats(campaign, counts), tuple(points)


def keep_looks(campaign: Campaign, looks: Mapping[str, KeptLook]) -> None:
    """Keep what was seen of points, by their names, next to what is known of others.

    Raises OSError.
    """
    path = campaign.runs_folder / LOOKS
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, _FORMAT, {"points": {**_read(path), **looks}})


def _read(path: Path) -> dict[str, KeptLook]:
    """Looks by point; none where the file is not there, not whole or of another format."""
    try:
        points = read_sealed(path, _FORMAT).get("points", {})
        return {name: KeptLook._make(look) for name, look in points.items()}
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return {}


def _names(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir()}
    except OSError:
        return set()


def _most(experiment: Experiment, there: Iterable[str]) -> list[int]:
    """Repeats that each point may have: the maximum, and what there is beyond it."""
    assert experiment.until_precise is not None
    benchmark, counts = experiment.benchmark, []
    for point in experiment.points:
        count = experiment.until_precise.most
        while benchmark.run_id(point, count) in there:
            count += 1
        counts.append(count)
    return counts


def _by_point(experiment: Experiment) -> list[tuple[Run, ...]]:
    """The runs of each point, in the order of the points."""
    runs_of: dict[int, list[Run]] = {id(point): [] for point in experiment.points}
    for run in experiment.runs:
        runs_of[id(run.point)].append(run)
    return [tuple(runs) for runs in runs_of.values()]


def _point(
    experiment: Experiment,
    runs: tuple[Run, ...],
    states: Mapping[str, RunState],
    looks: Mapping[str, KeptLook],
) -> RepeatedPoint:
    rule = experiment.until_precise
    assert rule is not None
    name = f"{experiment.name}/{runs[0].run_id}"
    here = tuple(states[run.run_id] for run in runs)
    seen = _seen(rule, experiment.main_metric, runs, here)
    look = looks.get(name)
    look = look if look is not None and look.seen == seen else None
    started = [place for place, state in enumerate(here) if state.status != Status.NEW]
    asked = max(rule.least, 1 + max(started, default=-1), look.asked if look else 0)
    return RepeatedPoint(name, experiment, rule, runs, here, min(asked, len(runs)), seen, look)


def _seen(
    rule: UntilPrecise, main: str | None, runs: Iterable[Run], states: Iterable[RunState]
) -> str:
    known: list[Any] = [
        [run.run_id, state.status, state.stamp]
        for run, state in zip(runs, states, strict=True)
        if state.status != Status.NEW
    ]
    stated = [rule.least, rule.most, rule.until, rule.metric, main]
    return digest_of([stated, known])


def repeats_entry(points: Iterable[RepeatedPoint]) -> PlanRepeats | None:
    """The entry in the plan of an experiment whose points these are; None without any."""
    entries: list[PlanRepeated] = []
    metric = ""
    for point in points:
        look = point.look
        entries.append(
            {
                "point": point.experiment.benchmark.scaled(point.runs[0].point),
                "state": NOT_LOOKED_AT if look is None else look.state,
                "width": None if look is None else look.width,
                "done": sum(state.status == Status.DONE for state in point.states),
                "planned": point.asked,
                "expected": point.asked if look is None else look.expected,
            }
        )
        metric = metric or (look.metric if look else point.rule.metric or "")
        rule = point.rule
    if not entries:
        return None
    return {
        "least": rule.least,
        "most": rule.most,
        "until": rule.until,
        "level": level_of(rule.least),
        "metric": metric,
        "points": entries,
    }
