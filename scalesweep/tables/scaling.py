"""Scaling: the points of an experiment in series, each against the smallest scale of its series."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.factors import series_parameters
from scalesweep.analysis.metrics import EPOCH_PHASES, Quantity, column
from scalesweep.analysis.multiple import LEVELS, VERDICTS, holm_cut
from scalesweep.analysis.stats import Ratio
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import target_efficiency
from scalesweep.tables.comparisons import EFFICIENCY, SCALING, SPEEDUP, Comparison, comparison
from scalesweep.tables.points import ExperimentData, Measure, Point, point_id


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


def scaling_rows(data: ExperimentData, points: Sequence[Point]) -> Iterator[Comparison]:
    """Efficiency and speedup of each point, against the smallest finished scale of its series."""
    target = target_efficiency(data.experiment)
    rows: list[tuple[Comparison, Ratio]] = []
    for group in series_of(data, points) if data.scale in data.axes else ():
        ran = [points[place] for place in group if points[place].rows.size]
        for measure, _, quantity in scaled_measures(data):
            for point, ideal, factor in _ideals(data, measure, ran, quantity)[1:]:
                values = data.repeats(point, measure)
                if not values.size or ideal <= 0 or (quantity.of_time and values.mean() <= 0):
                    continue
                over = (ran[0], point) if quantity.of_time else (point, ran[0])
                for kind, per, null in ((EFFICIENCY, factor, target), (SPEEDUP, 1.0, 1.0)):
                    ratio = data.compare(*over, measure, per, null)
                    row = comparison(
                        data, SCALING, (data.scale,), measure, (point, ran[0]), ratio,
                        quantity=kind, null=null, value=text_of(point.values[data.scale]),
                        base_value=text_of(ran[0].values[data.scale]), series_id=point_id(ran[0]),
                    )  # fmt: skip
                    rows.append((row, ratio))
    return _decided(data, rows)


def _decided(
    data: ExperimentData, rows: Sequence[tuple[Comparison, Ratio]]
) -> Iterator[Comparison]:
    """The rows, with the interval that decides where efficiencies are judged: those of the
    metric that says how the experiment scales, in its steady phase (Holm over all of these)."""
    shares = [row for row, _ in rows if row.quantity == EFFICIENCY]
    scaled = {row.metric for row in shares}
    metric = next((name for name in data.ranked if name in scaled), "")
    steady = (metric, "later" if (metric, "later") in data.measures else "run")
    judged = [1.0 if row.p is None else row.p for row in shares
              if (row.metric, row.phase) == steady]  # fmt: skip
    cut = holm_cut(judged, LEVELS[VERDICTS])
    for row, ratio in rows:
        if row.quantity == EFFICIENCY and ratio.known and (row.metric, row.phase) == steady:
            bounds = ratio.excluding(cut, data.level)
            yield replace(row, decides_low=bounds.low, decides_high=bounds.high)
        else:
            yield row


def _ideals(
    data: ExperimentData, measure: Measure, ran: Sequence[Point], quantity: Quantity
) -> list[tuple[Point, float, float]]:
    """The finished points of a series, by scale, each with its ideal value and the share of the
    first one's work that it has; none if the first lacks the metric.

    A rate ideally grows with that share; a time falls with it in strong scaling, and stays in weak
    scaling.
    """
    base = data.repeats(ran[0], measure) if ran else np.empty(0)
    if not base.size:
        return []
    timed = quantity.of_time
    grows = not timed or data.experiment["scaling"] == "strong"
    shares = [_share(data, p, "total" if timed else quantity.scope) if grows else 1.0 for p in ran]
    factors = [share / shares[0] for share in shares]
    first = float(base.mean())
    return [(p, first / f if timed else first * f, f) for p, f in zip(ran, factors, strict=True)]


def _share(data: ExperimentData, point: Point, scope: str) -> float:
    """What an ideal rate is proportional to: all ranks (or devices), or those of one rank."""
    count = float(point.values[data.scale])
    if scope == "total" or data.scale == "ranks":
        return count if scope == "total" else 1.0
    return count / float(point.values.get("ranks") or data.experiment["fixed"]["ranks"])


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
    series = [[i for i in group if points[i].rows.size] for group in groups]
    scale = [int(point.values[data.scale]) for point in points]
    base_of = {place: scale[ran[0]] for ran in series for place in ran}
    smallest: dict[str | None, int] = {}
    for ran in filter(None, series):
        source = points[ran[0]].source
        smallest[source] = min(scale[ran[0]], smallest.get(source, scale[ran[0]]))
    own = {
        ran[0] for ran in series
        if ran and scale[ran[-1]] > scale[ran[0]] == smallest[points[ran[0]].source]
    }  # fmt: skip
    ratios = {
        (row.point_id, row.metric, row.phase, row.quantity): row.ratio
        for row in scaling_rows(data, points)
    }
    ids = [point_id(point) for point in points]
    columns: dict[str, Floats] = {}
    for measure, stem, quantity in scaled_measures(data):
        ideals = np.full(len(points), math.nan)
        for ran in series:
            of_series = _ideals(data, measure, [points[i] for i in ran], quantity)
            ideals[ran[: len(of_series)]] = [ideal for _, ideal, _ in of_series]
        columns[column(f"{stem}_ideal", "", measure[1])] = ideals
        of_rank = quantity.scope != "total" and not quantity.of_time
        for kind, word in ((EFFICIENCY, "eff"), (SPEEDUP, "speedup"))[: 1 if of_rank else 2]:
            known = [ratios.get((name, *measure, kind)) for name in ids]
            for end in ("value", "low", "high"):
                name = f"{stem}_{word}" if end == "value" else f"{stem}_{word}_{end}"
                numbers = np.array([getattr(ratio, end, None) for ratio in known], np.float64)
                if end == "value":
                    numbers[[i for i in own if math.isfinite(ideals[i])]] = 1.0
                columns[column(name, "", measure[1])] = numbers
    based = {f"base_{data.scale}": typed_values([base_of.get(i) for i in range(len(ids))], int)}
    frame = pd.concat([table, pd.DataFrame(based), pd.DataFrame(columns)], axis=1)
    return frame.iloc[[i for group in groups for i in group]].reset_index(drop=True)
