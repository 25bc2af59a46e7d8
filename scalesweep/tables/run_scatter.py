"""How much runs of a point scatter: what single runs are worth where others were repeated."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from scalesweep.analysis.stats import identical
from scalesweep.tables.points import ExperimentData, Measure, Point

# Pooled: a sum of squared deviations of logarithms from their points' means, and its degrees of
# freedom.
Squares = tuple[float, int]


def relative_error(
    data: ExperimentData, point: Point, measure: Measure, scatter: float = math.nan
) -> float:
    """Relative standard error of a point's mean; NaN where it is not known.

    ``scatter`` is the relative standard deviation of a run, as other points tell it: it counts
    where the point has a single run.
    """
    if stated := data.stated(point, measure):
        return stated.std / stated.mean / math.sqrt(stated.count)
    values = data.repeats(point, measure)
    if values.size == 1:
        return scatter
    if values.size < 2 or bool(identical(values)) or (values <= 0).any():
        return math.nan
    return float(np.log(values).std(ddof=1)) / math.sqrt(values.size)


def squares_of(data: ExperimentData, points: Iterable[Point], measure: Measure) -> Squares:
    """What the repeated points of one source tell of the scatter of a measure."""
    total, degrees = 0.0, 0
    for point in points:
        values = data.repeats(point, measure)
        if values.size > 1 and (values > 0).all() and not bool(identical(values)):
            logs = np.log(values)
            total += float(((logs - logs.mean()) ** 2).sum())
            degrees += values.size - 1
    return total, degrees


def scatter_of(
    data: ExperimentData, own: Point, measure: Measure, elsewhere: Mapping[str, Squares]
) -> float:
    """Relative standard deviation of a run in the experiment of a point, among those of its source;
    where none was repeated there, in other experiments of its program (``elsewhere``); NaN where
    nothing tells."""
    same = [point for point in data.points() if point.source == own.source]
    total, degrees = squares_of(data, same, measure)
    if not degrees:
        key = scatter_key(data, own.source, measure)
        total, degrees = elsewhere.get(key, (0.0, 0))
    return math.sqrt(total / degrees) if degrees else math.nan


def scatter_key(data: ExperimentData, source: str | None, measure: Measure) -> str:
    """What the scatter of runs is pooled over: a program's measure of one source."""
    return "/".join((data.experiment["benchmark"], str(source), *measure))
