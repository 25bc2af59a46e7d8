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

    ``known``: points of the series by rank count, alike but for the ranks and what is derived;
    ``left_out``: whether the campaign excludes a point.
    """
    benchmark, derivation = experiment.benchmark, experiment.derivation
    if benchmark.workers is not None:
        return None
    last = known[max(known)]
    point = {**last, "ranks": count}
    set_here = point.keys() - derivation.derived.keys() - {"ranks"}
    if any(of[name] != last[name] for of in known.values() for name in set_here):
        return None
    try:
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
