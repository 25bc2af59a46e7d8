"""The runs of points: a number of repeats of each, or the numbers of those that each one has."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.experiment_keys import ExperimentKeys, UntilPrecise
from scalesweep.core.profilers import NONE


class Run(NamedTuple):
    """One execution of one point.

    ``run_id`` is the name of its folder too; a profiled run has the kind of profile in it.
    """

    run_id: str
    point: Mapping[str, Any]
    repeat: int
    profile: str = NONE


def planned_runs(
    benchmark: Benchmark, points: Mapping[str, Mapping[str, Any]], spec: ExperimentKeys
) -> tuple[Run, ...]:
    """The runs of an experiment's points, which are given by their identities: of those that are
    repeated until they are precise the least."""
    repeats = spec.repeats
    if isinstance(repeats, tuple):
        return runs_of(benchmark, points, [numbers for numbers in repeats if numbers])
    count = repeats.least if isinstance(repeats, UntilPrecise) else repeats
    return runs_of(benchmark, points, [range(count)] * len(points))


def runs_of(
    benchmark: Benchmark,
    points: Mapping[str, Mapping[str, Any]],
    repeats: Iterable[Sequence[int]],
) -> tuple[Run, ...]:
    """The first of the ``repeats`` of every point (by its identity), then the second of each, and
    so on."""
    of_points = [(*item, numbers) for item, numbers in zip(points.items(), repeats, strict=True)]
    return tuple(
        Run(benchmark.id_of(point, identity, numbers[place]), point, numbers[place])
        for place in range(max(len(numbers) for *_, numbers in of_points))
        for identity, point, numbers in of_points
        if place < len(numbers)
    )
