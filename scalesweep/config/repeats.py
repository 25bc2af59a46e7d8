"""The repeats of a point: a number, a list, or as many as it takes until its mean is precise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scalesweep.analysis.metrics import EPOCH_METRICS
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.experiment_checks import check_metric
from scalesweep.config.percent import read_percent
from scalesweep.core.errors import UserError
from scalesweep.core.profilers import NONE


class Run(NamedTuple):
    """One execution of one point.

    ``run_id`` is the name of its folder too; a profiled run has the kind of profile in it.
    """

    run_id: str
    point: Mapping[str, Any]
    repeat: int
    profile: str = NONE


@dataclass(frozen=True)
class UntilPrecise:
    """Repeats until the mean of a metric is precise: at least ``least``, at most ``most``.

    ``until`` is the half width of its interval over the mean (0.02 for 2 %); ``metric`` None: the
    one that figures and findings are about.
    """

    least: int
    most: int
    until: float
    metric: str | None


def until_precise(benchmark: Benchmark, given: Any, where: str) -> UntilPrecise | None:
    """The rule that ``repeats`` of an experiment states; None where their number is fixed.

    Raises UserError.
    """
    if not isinstance(given, Mapping):
        return None
    least, most = given["min"], given["max"]
    if most < least:
        raise UserError(f"{where}.max: must be {least} (min) or more, not {most}")
    until = read_percent(given["until"], f"{where}.until")
    metric = given.get("metric")
    if metric is not None and metric not in EPOCH_METRICS:
        check_metric(benchmark, metric, f"{where}.metric", EPOCH_METRICS)
    return UntilPrecise(least, most, until, metric)


def planned_runs(
    benchmark: Benchmark,
    points: Mapping[str, Mapping[str, Any]],
    spec: Mapping[str, Any],
    linked: Sequence[Mapping[str, Any]],
    where: str,
) -> tuple[Run, ...]:
    """The runs of an experiment's points, by their identities.

    ``repeats`` is how many each has (with a rule, at least), or, as in campaigns of imported runs,
    the numbers of those that each entry of ``linked`` has. Raises UserError.
    """
    repeats = spec.get("repeats", 1)
    if isinstance(repeats, Mapping):
        return repeated(benchmark, points, [repeats["min"]] * len(points))
    if isinstance(repeats, int):
        return repeated(benchmark, points, [repeats] * len(points))
    if spec.keys() & {"axes", "extra", "exclude"} or len(repeats) != len(linked):
        raise UserError(
            f"{where}.repeats: a list must hold the repeats of each entry of 'linked', and goes "
            "with neither axes, exclude nor extra"
        )
    if len(points) != len(linked):
        raise UserError(f"{where}.linked: with a list of repeats each entry must be another point")
    longest = max(map(len, repeats))
    return tuple(
        Run(benchmark.id_of(point, identity, numbers[place]), point, numbers[place])
        for place in range(longest)
        for (identity, point), numbers in zip(points.items(), repeats, strict=True)
        if place < len(numbers)
    )


def repeated(
    benchmark: Benchmark, points: Mapping[str, Mapping[str, Any]], counts: Iterable[int]
) -> tuple[Run, ...]:
    """Every point (by its identity) once, then every point once more, and so on, each as often as
    ``counts`` says."""
    numbered = list(zip(points.items(), counts, strict=True))
    return tuple(
        Run(benchmark.id_of(point, identity, repeat), point, repeat)
        for repeat in range(max(count for _, count in numbered))
        for (identity, point), count in numbered
        if repeat < count
    )
