"""The runs of an experiment beside its measured ones: under a profiler, or without exchange."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.repeats import Run
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


def profiled_runs(
    benchmark: Benchmark,
    stated: str,
    asked: str | None,
    points: Iterable[Mapping[str, Any]],
    runs: Iterable[Run],
    where: str,
) -> tuple[Run, ...]:
    """One run of every point under a profiler, one of every run without exchange, or none.

    None, too, where --config asks the whole campaign for runs without exchange, or under the
    profiler of a framework, and this benchmark has none. Raises UserError for a kind that the
    benchmark does not have.
    """
    kind = asked or stated
    if kind == NONE:
        return ()
    framework = benchmark.framework or UNSAID
    allowed = [
        each
        for each in KINDS
        if OF_FRAMEWORK.get(each, framework) == framework
        and (each != NOEXCHANGE or benchmark.noexchange)
    ]
    what = f"runs on {framework}"
    if benchmark.extract:
        allowed, what = list(FOREIGN_KINDS), "is an external program"
    elif kind == NOEXCHANGE:
        what = "has no exchange that it can leave out"
    if kind not in allowed:
        if asked and (kind == NOEXCHANGE or (kind in OF_FRAMEWORK and not benchmark.extract)):
            return ()
        known = choices(kind, (NONE, *allowed))
        raise UserError(f"{where}.profile: {kind!r}: benchmark {benchmark.name} {what}; {known}")
    if kind == NOEXCHANGE:
        return tuple(
            run._replace(run_id=folder_name(run.run_id, kind), profile=kind) for run in runs
        )
    return tuple(
        Run(folder_name(benchmark.run_id(point, 0), kind), point, 0, kind) for point in points
    )


def check_any(asked: str | None, profiled: Sequence[Sequence[Run]]) -> None:
    """Raise UserError if --config asks for runs of a kind that only some benchmarks have, and none
    of these has any."""
    if any(profiled) or (asked not in OF_FRAMEWORK and asked != NOEXCHANGE):
        return
    what = (
        "exchanges gradients that it can leave out (`noexchange: true`"
        if asked == NOEXCHANGE
        else f"runs on {OF_FRAMEWORK[str(asked)]} (`framework`"
    )
    raise UserError(
        f"--config profile={asked}: no benchmark of this campaign {what} in benchmark.yaml)"
    )
