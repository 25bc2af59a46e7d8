"""The runs of points, those beside the measured ones, and their order, so that drift does not look
like an effect.

Repeat 0 of every point comes in a random order, then repeat 1 of every point in another one, and so
on: randomised complete blocks (Montgomery, Design and Analysis of Experiments, chapter 4). A run's
position depends on the campaign and the seed alone, not on what is done already.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise, repeat
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

# Fractional part of the golden ratio: of its multiples (modulo 1) any first few lie evenly spread.
GOLDEN = (math.sqrt(5) - 1) / 2


class Run(NamedTuple):
    """One execution of one point.

    ``run_id`` is the name of its folder too; a profiled run has the kind of profile in it.
    """

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
    """One run of every point under a profiler, one of every run without exchange, or none.

    None, too, where ``asked``, what --config says of the whole campaign, is a kind that this
    benchmark does not have. Raises UserError for such a kind that the experiment has ``stated``.
    """
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


def arranged(
    runs: Mapping[str, int],
    seed: int | None,
    control: Sequence[str] = (),
    profiled: Sequence[str] = (),
    stages: Mapping[str, int] | None = None,
) -> list[str]:
    """Run ids in the order in which they are to be started.

    ``runs``: run id -> repeat, in the order of the campaign file, which is kept if ``seed`` is
    None; ``control``: runs of the control point by repeat, which come between; ``profiled`` come
    last. ``stages``: the number of runs that wait for those of smaller numbers; else 0.
    """
    ids = list(runs)
    if seed is not None:
        ids.sort(key=lambda run_id: (runs[run_id], _drawn(seed, run_id)))
        profiled = sorted(profiled, key=lambda run_id: _drawn(seed, run_id))
    ids.sort(key=lambda run_id: (stages or {}).get(run_id, 0))  # keeps the order of equals
    return [*_with_control(ids, control), *profiled]


def _drawn(seed: int, run_id: str) -> bytes:
    """The place that chance gives a run in its block."""
    return hashlib.blake2b(f"{seed}/{run_id}".encode(), digest_size=8).digest()


def _with_control(others: Sequence[str], control: Sequence[str]) -> list[str]:
    """The control's runs spread evenly among the others, the first and the last being control runs.

    Any first few of its repeats (those that an experiment shares) are spread over the campaign too.
    """
    if not control:
        return list(others)
    spread = sorted(range(len(control)), key=lambda repeat: repeat * GOLDEN % 1)
    gaps = max(len(control) - 1, 1)
    ends = [round(len(others) * place / gaps) for place in range(len(control) + 1)]
    parts = zip(spread, pairwise(ends), strict=True)
    return list(chain.from_iterable([control[n], *others[a:b]] for n, (a, b) in parts))
