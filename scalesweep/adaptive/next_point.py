"""The point that continues a series at a rank count that the campaign does not plan."""

from collections.abc import Mapping
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
) -> dict[str, Any] | None:
    """The point of a series at a rank count that is not planned; None where there can be none.

    ``known``: points of the series by rank count, alike but for the ranks and what is derived.
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
    return None if any(rule(point) for rule in experiment.rules) else point
