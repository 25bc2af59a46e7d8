"""The runs of an experiment beside its measured ones: under a profiler, or without exchange."""

from collections.abc import Iterable, Mapping
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

    None, too, where ``asked``, what --config says of the whole campaign, is a kind that this
    benchmark does not have. Raises UserError for such a kind that the experiment has ``stated``.
    """
    kind = asked or stated
    if kind == NONE:
        return ()
    framework = benchmark.framework or UNSAID
    allowed = [
        each
        for each in (FOREIGN_KINDS if benchmark.extract else KINDS)
        if benchmark.extract
        or (
            OF_FRAMEWORK.get(each, framework) == framework
            and (each != NOEXCHANGE or benchmark.noexchange)
        )
    ]
    if kind not in allowed:
        if asked:
            return ()
        what = f"runs on {framework}"
        if benchmark.extract:
            what = "is an external program"
        elif kind == NOEXCHANGE:
            what = "has no exchange that it can leave out"
        known = choices(kind, (NONE, *allowed))
        raise UserError(f"{where}.profile: {kind!r}: benchmark {benchmark.name} {what}; {known}")
    if kind == NOEXCHANGE:
        return tuple(
            run._replace(run_id=folder_name(run.run_id, kind), profile=kind) for run in runs
        )
    return tuple(
        Run(folder_name(benchmark.run_id(point, 0), kind), point, 0, kind) for point in points
    )
