"""The runs of points, and those beside the measured ones, under a profiler or without exchange."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.experiment_keys import ExperimentKeys
from scalesweep.core.errors import UserError, choices
from scalesweep.core.profilers import (
    FOREIGN_KINDS,
    KINDS,
    NOEXCHANGE,
    NONE,
    OF_FRAMEWORK,
    UNSAID,
    folder_name,
)


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
    count = repeats if isinstance(repeats, int) else repeats.least
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
        Run(benchmark.run_id(point, numbers[place], identity), point, numbers[place])
        for place in range(max(len(numbers) for *_, numbers in of_points))
        for identity, point, numbers in of_points
        if place < len(numbers)
    )


def profiled_runs(
    benchmark: Benchmark,
    stated: str,
    asked: str | None,
    points: Iterable[Mapping[str, Any]],
    runs: Iterable[Run],
    where: str,
) -> tuple[Run, ...]:
    """One run of every point under a profiler, one of every run without exchange, or none.

    None, too, where ``asked``, what --config says of the whole campaign, is a kind that this
    benchmark does not have. Raises UserError for such a kind that the experiment has ``stated``.
    """
    kind = asked or stated
    if kind == NONE:
        return ()
    framework = benchmark.framework or UNSAID
    allowed: Sequence[str] = FOREIGN_KINDS
    if not benchmark.extract:
        own = [each for each in KINDS if OF_FRAMEWORK.get(each, framework) == framework]
        allowed = [each for each in own if each != NOEXCHANGE or benchmark.noexchange]
    if kind not in allowed:
        if asked:
            return ()
        known = choices(kind, (NONE, *allowed))
        raise UserError(f"{where}.profile: benchmark {benchmark.name} has no {kind!r}; {known}")
    if kind == NOEXCHANGE:
        return tuple(
            run._replace(run_id=folder_name(run.run_id, kind), profile=kind) for run in runs
        )
    return tuple(
        Run(folder_name(benchmark.run_id(point, 0), kind), point, 0, kind) for point in points
    )
