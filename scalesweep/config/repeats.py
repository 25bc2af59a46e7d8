"""The repeats of a point: a number, a list, or as many as it takes until its mean is precise."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scalesweep.analysis.metrics import EPOCH_METRICS
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign_keys import ExperimentKeys, UntilPrecise
from scalesweep.config.experiment_checks import check_metric
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


def until_precise(benchmark: Benchmark, repeats: Any, where: str) -> UntilPrecise | None:
    """The rule that ``repeats`` of an experiment states; None where their number is fixed.

    Raises UserError.
    """
    if not isinstance(repeats, UntilPrecise):
        return None
    if repeats.metric is not None and repeats.metric not in EPOCH_METRICS:
        check_metric(benchmark, repeats.metric, f"{where}.metric", EPOCH_METRICS)
    return repeats


def listed_points(spec: ExperimentKeys, combinations: int, where: str) -> list[bool] | None:
    """Of a list of ``repeats``, as campaigns of imported runs have it: which combinations of axes
    and linked entries have any, and are points. None where ``repeats`` is a number or a rule.

    Raises UserError.
    """
    repeats = spec.repeats
    if not isinstance(repeats, tuple):
        return None
    if spec.extra or spec.exclude or len(repeats) != combinations or not any(repeats):
        raise UserError(
            f"{where}.repeats: a list must hold the repeats of each entry of 'linked', or of each "
            f"combination of these with 'axes' ({combinations}, the last axis changing fastest; "
            "[]: no such point), and goes with neither exclude nor extra"
        )
    return [bool(numbers) for numbers in repeats]


def planned_runs(
    benchmark: Benchmark, points: Mapping[str, Mapping[str, Any]], spec: ExperimentKeys
) -> tuple[Run, ...]:
    """The runs of an experiment's points, which are given by their identities.

    ``repeats`` is how many each has (with a rule, at least), or, as in campaigns of imported runs,
    the numbers of those that each one has.
    """
    repeats = spec.repeats
    if isinstance(repeats, tuple):
        return _runs(benchmark, points, [numbers for numbers in repeats if numbers])
    count = repeats.least if isinstance(repeats, UntilPrecise) else repeats
    return repeated(benchmark, points, [count] * len(points))


def repeated(
    benchmark: Benchmark, points: Mapping[str, Mapping[str, Any]], counts: Iterable[int]
) -> tuple[Run, ...]:
    """Every point (by its identity) once, then every point once more, and so on, each as often as
    ``counts`` says."""
    return _runs(benchmark, points, [range(count) for count in counts])


def _runs(
    benchmark: Benchmark,
    points: Mapping[str, Mapping[str, Any]],
    repeats: Sequence[Sequence[int]],
) -> tuple[Run, ...]:
    """The first of the ``repeats`` of every point, then the second of each, and so on."""
    return tuple(
        Run(benchmark.id_of(point, identity, numbers[place]), point, numbers[place])
        for place in range(max(map(len, repeats)))
        for (identity, point), numbers in zip(points.items(), repeats, strict=True)
        if place < len(numbers)
    )
