"""Scaling: the points of an experiment in series, each against the smallest scale of its series."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scalesweep.analysis.factors import series_parameters
from scalesweep.analysis.metrics import EPOCH_PHASES, Quantity, column
from scalesweep.analysis.stats import Ratio
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.files import canonical_json
from scalesweep.tables.points import ExperimentData, Measure, Point


def series_of(data: ExperimentData, points: Sequence[Point]) -> list[list[int]]:
    """Positions of the points of every series, each sorted by what they scale over."""
    names = series_parameters(data.experiment)
    by_work = data.experiment["scaling"] == "strong" and bool(data.experiment["work"])
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, point in enumerate(points):
        key = canonical_json([point.values[name] for name in names])
        # Ranks that share epochs or stop at a target measure different samples at equal work.
        size = (point.samples if point.work is None else point.work) if by_work else None
        groups.setdefault((key, point.source, size), []).append(position)
    scales = [point.values.get(data.scale, 0) for point in points]
    return [sorted(group, key=lambda i: scales[i]) for group in groups.values()]


def scaled_measures(data: ExperimentData) -> Iterator[tuple[Measure, str, Quantity]]:
    """Rates and times of work, which have an ideal: measure, stem of its columns, meaning."""
    stems = {"local_throughput": "local", "total_throughput": "total"}
    for metric, phase in data.measures:
        quantity = data.quantities[metric]
        if (stem := stems.get(metric)) and phase in EPOCH_PHASES and quantity.scales:
            yield (metric, phase), stem, quantity
        elif phase == "run" and quantity.scales:
            yield (metric, phase), metric, quantity


def scaling_table(
    data: ExperimentData, points: Sequence[Point], table: pd.DataFrame
) -> pd.DataFrame:
    """`points` sorted by series and scale, with ideal, efficiency and speedup.

    The base of a series is its smallest finished number of ranks (or devices), in `base_ranks`
    (`base_devices`). Against itself it has efficiency 1 by definition and no interval. It has none
    where it is all that its series has, or where another series of the source begins at a smaller
    scale: a 1 next to what that has there would say something that was not measured. Where the
    base lacks a metric, so does the series.
    """
    groups = series_of(data, points)
    bases = _bases(data, points, groups)
    smallest: dict[str | None, int] = {}
    for place, scale in bases.items():
        source = points[place].source
        smallest[source] = min(scale, smallest.get(source, scale))
    columns: dict[str, Floats] = {}
    for measure, stem, quantity in scaled_measures(data):
        parts = [f"{stem}_ideal", f"{stem}_eff", f"{stem}_eff_low", f"{stem}_eff_high"]
        if quantity.scope == "total" or quantity.of_time:
            parts += [f"{stem}_speedup", f"{stem}_speedup_low", f"{stem}_speedup_high"]
        efficiencies = np.full((len(points), 7), math.nan)
        for group in groups:
            finished = [position for position in group if points[position].rows.size]
            if finished:
                chosen = [points[i] for i in finished]
                rows = [_numbers(at) for at in against_base(data, measure, chosen, quantity, 1.0)]
                first = chosen[0]
                if not math.isnan(rows[0][0]):
                    rows[0][1] = rows[0][4] = 1.0
                alone = chosen[-1].values[data.scale] == first.values[data.scale]
                if alone or first.values[data.scale] > smallest[first.source]:
                    rows[0][1] = rows[0][4] = math.nan
                efficiencies[finished] = rows
        for part, values in zip(parts, efficiencies.T, strict=False):
            columns[column(part, "", measure[1])] = values
    based = pd.DataFrame(
        {f"base_{data.scale}": typed_values([bases.get(i) for i in range(len(points))], int)}
    )
    frame = pd.concat([table, based, pd.DataFrame(columns)], axis=1)
    return frame.iloc[[i for group in groups for i in group]].reset_index(drop=True)


class AgainstBase(NamedTuple):
    """A point against the smallest scale of its series: the ideal value, and ratios, which the base
    itself and points without a value have not."""

    point: Point
    ideal: float
    efficiency: Ratio | None = None
    speedup: Ratio | None = None


def _numbers(at: AgainstBase) -> list[float]:
    """Ideal, efficiency with bounds, speedup with bounds."""
    ratios = (at.efficiency, at.speedup)
    parts = [[math.nan] * 3 if r is None else [r.value, r.low, r.high] for r in ratios]
    return [at.ideal, *parts[0], *parts[1]]


def _bases(
    data: ExperimentData, points: Sequence[Point], groups: Sequence[Sequence[int]]
) -> dict[int, int]:
    """By position of a finished point the smallest finished scale of its series."""
    bases: dict[int, int] = {}
    for group in groups:
        finished = [position for position in group if points[position].rows.size]
        for position in finished:
            bases[position] = int(points[finished[0]].values[data.scale])
    return bases


def against_base(
    data: ExperimentData,
    measure: Measure,
    points: Sequence[Point],
    quantity: Quantity,
    target: float,
) -> list[AgainstBase]:
    """Ideal, efficiency and speedup of the finished points of a series, sorted by scale.

    A rate ideally grows with the share of the work that is done; a time falls with it in strong
    scaling, and stays in weak scaling. p values of efficiencies are of their being ``target``.
    """
    base = data.repeats(points[0], measure) if points else np.empty(0)
    if base.size == 0:
        return [AgainstBase(point, math.nan) for point in points]
    timed = quantity.of_time
    scope = "total" if timed else quantity.scope
    grows = not timed or data.experiment["scaling"] == "strong"
    result = []
    for place, point in enumerate(points):
        factor = _share(data, point, scope) / _share(data, points[0], scope) if grows else 1.0
        ideal = float(base.mean()) * (1 / factor if timed else factor)
        values = data.repeats(point, measure)
        if place == 0 or not values.size or ideal <= 0 or (timed and values.mean() <= 0):
            result.append(AgainstBase(point, ideal))
            continue
        top, bottom = (points[0], point) if timed else (point, points[0])
        ratios = (
            data.compare(top, bottom, measure, per, null)
            for per, null in ((factor, target), (1, 1))
        )
        result.append(AgainstBase(point, ideal, *ratios))
    return result


def _share(data: ExperimentData, point: Point, scope: str) -> float:
    """What an ideal rate is proportional to: all ranks (or devices), or those of one rank."""
    count = float(point.values[data.scale])
    if scope == "total" or data.scale == "ranks":
        return count if scope == "total" else 1.0
    return count / float(point.values.get("ranks") or data.experiment["fixed"]["ranks"])
