"""The point that continues a series at a rank count that the campaign does not plan."""

from collections.abc import Callable, Mapping
from typing import Any

from scalesweep.config.experiment import Experiment
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError

PointOf = Mapping[str, Any]


def derived(
    experiment: Experiment,
    site: Site,
    known: Mapping[int, PointOf],
    count: int,
    left_out: Callable[[PointOf], bool],
) -> dict[str, Any] | None:
    """The point of a series at a rank count that is not planned; None where there can be none.

    ``known``: points of the series by rank count; a parameter that changes along it has to follow
    the ranks, in proportion or inversely. ``left_out``: whether the campaign excludes a point.
    """
    benchmark, derivation = experiment.benchmark, experiment.derivation
    if benchmark.workers is not None:
        return None
    last = known[max(known)]
    point = {**last, "ranks": count}
    try:
        for name in sorted(point.keys() - derivation.derived.keys()):
            values = {ranks: point[name] for ranks, point in known.items()}
            if name != "ranks" and any(value != last[name] for value in values.values()):
                point[name] = _followed(values, count)
            point[name] = benchmark.parameter(name, "").normalise(point[name], "")
        point, broken = derivation.at(point)
        if broken:
            return None
        benchmark.check_point(point, "")
        site.check_point(point, "")
    except (UserError, ValueError):
        return None
    share = benchmark.total_work(point), benchmark.total_work(last)
    if share[0] is not None and share[1] is not None:
        each = experiment.scaling == "weak"
        old, new = share[1] * (count if each else 1), share[0] * (last["ranks"] if each else 1)
        if old != new:
            return None
    return None if left_out(point) else point


def _followed(values: Mapping[int, Any], count: int) -> Any:
    """The value that continues a parameter along the ranks. Raises ValueError if nothing does."""
    if any(isinstance(value, bool) or not isinstance(value, int) for value in values.values()):
        raise ValueError("follows no rank count")
    ranks, value = next(iter(values.items()))
    if all(value * other == known_value * ranks for other, known_value in values.items()):
        followed, rest = divmod(value * count, ranks)
    elif all(value * ranks == known_value * other for other, known_value in values.items()):
        followed, rest = divmod(value * ranks, count)
    else:
        raise ValueError("follows no rank count")
    if rest:
        raise ValueError("does not divide")
    return followed
