"""Published series forecast from the smaller half of their counts, by what other clusters taught.

The calibration of a forecast (``prediction_calibration``) is made without the series of its
cluster.
Three ways: nothing is known of the machine; the border of its nodes is known; and finished series
of the same program on the same cluster are known too, as a campaign's other series are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bench.lib.prediction_calibration import calibrate
from bench.lib.prediction_rivals import RIVALS
from bench.lib.prediction_series import PUBLIC, PublicSeries
from scalesweep.analysis.prediction.calibration import Calibration
from scalesweep.analysis.prediction.forecast import predict, refusals
from scalesweep.analysis.prediction.series import Series, refusal

NOTHING, BORDERS, SIMILAR = "machine not known", "nodes known", "among similar series"
WAYS: Mapping[str, Callable[[PublicSeries], Series]] = {
    NOTHING: PublicSeries.series,
    BORDERS: PublicSeries.with_borders,
    SIMILAR: PublicSeries.among_similar,
}
OTHERS = ("last value", "a + b log2 p", "Extra-P")


class Row(NamedTuple):
    """A count that was forecast: errors relative to what was measured, ours and ``OTHERS``'."""

    cluster: str
    scaling: str
    points: int
    across: bool
    refused: str
    errors: tuple[float, ...]
    in_90: bool
    in_95: bool


class Score(NamedTuple):
    """Of many rows: the share that was refused; of the rest medians of errors and coverage."""

    rows: int
    refused: float
    errors: tuple[float, ...]
    in_90: float
    in_95: float


def rows_of(
    public: PublicSeries, way: str, rule: Calibration | None = None, count: int | None = None
) -> list[Row]:
    """The forecasts of a series from its first counts, its smaller half unless it is said how many;
    none if these are too few."""
    series = WAYS[way](public)
    count = max((len(series.ranks) + 1) // 2, 3) if count is None else count
    known, targets = series.first(count), series.ranks[count:]
    if refusal(known) or not len(targets):
        return []
    said, why = predict(known, targets, rule), refusals(known, targets, rule=rule)
    measured = series.cost[count:]
    costs = [said.cost, *(RIVALS[name](known, targets, 0.9).cost for name in OTHERS)]
    inside = []
    for level in (0.9, 0.95):
        low, high = said.interval(level)
        inside.append((low <= measured) & (measured <= high))
    return [
        Row(
            public.cluster, public.scaling, count,
            bool(known.ranks[-1] <= public.ranks_per_node < target), why[i],
            tuple(abs(float(cost[i] / measured[i]) - 1) for cost in costs),
            bool(inside[0][i]), bool(inside[1][i]),
        )
        for i, target in enumerate(targets)
    ]  # fmt: skip


def left_out(
    way: str, of_a_kind: int, series: Sequence[PublicSeries] = PUBLIC, every: bool = False
) -> list[Row]:
    """The rows of all series, each by the calibration without its cluster: from the smaller half,
    or from ``every`` number of counts."""
    return [
        row
        for public in series
        for count in (range(3, len(public.ranks)) if every else (None,))
        for row in rows_of(
            public, way, calibrate(public.scaling, frozenset({public.cluster}), of_a_kind), count
        )
    ]


GROUPS: Mapping[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "weak": lambda row: row.scaling == "weak",
    "strong": lambda row: row.scaling == "strong",
    "from three counts": lambda row: row.points == 3,
    "from more": lambda row: row.points > 3,
    "weak, from more": lambda row: row.scaling == "weak" and row.points > 3,
    "strong, from more": lambda row: row.scaling == "strong" and row.points > 3,
    "across a node's border": lambda row: row.across,
    "within": lambda row: not row.across,
}


def score_of(rows: Iterable[Row]) -> Score:
    """The score of rows; NaN where all are refused."""
    every = list(rows)
    kept = [row for row in every if not row.refused]
    if not kept:
        return Score(len(every), 1.0, (np.nan,) * (1 + len(OTHERS)), np.nan, np.nan)
    errors = np.median([row.errors for row in kept], axis=0)
    return Score(
        len(every), 1 - len(kept) / len(every), tuple(errors.tolist()),
        float(np.mean([row.in_90 for row in kept])), float(np.mean([row.in_95 for row in kept])),
    )  # fmt: skip


def scores(rows: Sequence[Row]) -> dict[str, Score]:
    """By group, then by cluster."""
    by_group = {name: score_of([row for row in rows if of(row)]) for name, of in GROUPS.items()}
    for name in dict.fromkeys(row.cluster for row in rows):
        by_group[name] = score_of([row for row in rows if row.cluster == name])
    return {name: score for name, score in by_group.items() if score.rows}
