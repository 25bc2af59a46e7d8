"""The runs of points, and those beside the measured ones: under a profiler, or without exchange."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
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
    """One execution of one point; ``run_id``, its folder's name, ends with the kind of profile."""

    run_id: str
    point: Mapping[str, Any]
    repeat: int
    profile: str = NONE


def planned_runs(
    benchmark: Benchmark, points: Sequence[Mapping[str, Any]], spec: ExperimentKeys
) -> tuple[Run, ...]:
    """The runs of an experiment's points: the least of those that are repeated until precise."""
    repeats = spec.repeats
    if isinstance(repeats, tuple):
        return runs_of(benchmark, points, filter(None, repeats))
    count = repeats if isinstance(repeats, int) else repeats.least
    return runs_of(benchmark, points, repeat(range(count), len(points)))


def runs_of(
    benchmark: Benchmark, points: Sequence[Mapping[str, Any]], repeats: Iterable[Sequence[int]]
) -> tuple[Run, ...]:
    """The first of the ``repeats`` of every point, then the second of each, and so on."""
    identities = map(benchmark.identity_of, points)
    of_points = list(zip(points, identities, repeats, strict=True))
    return tuple(
        Run(benchmark.run_id(point, numbers[place], identity), point, numbers[place])
        for place in range(max(len(numbers) for *_, numbers in of_points))
        for point, identity, numbers in of_points
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
    """One run of every point under a profiler, one of every run without exchange, or none. Raises
    UserError if the benchmark does not have the ``stated`` kind; if ``asked`` (--config), none."""
    kind, framework = asked or stated, benchmark.framework or UNSAID
    allowed = [each for each in KINDS if OF_FRAMEWORK.get(each, framework) == framework]
    if benchmark.extract:
        allowed = [*FOREIGN_KINDS]
    elif not benchmark.noexchange:
        allowed.remove(NOEXCHANGE)
    if kind in allowed:
        first = (Run(benchmark.run_id(point, 0), point, 0) for point in points)
        return tuple(
            run._replace(run_id=folder_name(run.run_id, kind), profile=kind)
            for run in (runs if kind == NOEXCHANGE else first)
        )
    if kind == NONE or asked:
        return ()
    known = choices(kind, (NONE, *allowed))
    raise UserError(f"{where}.profile: benchmark {benchmark.name} has no {kind!r}; {known}")
