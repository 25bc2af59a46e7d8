"""Ratios new over base with their intervals, and what they say: improved, worse or unclear.

A verdict goes by the plain 95 % interval of its own ratio. As many are looked at together, each
also has a p value corrected for that, and a summary says how many verdicts chance alone would give.
What the page says first of an experiment is corrected for all that it might have said.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from scalesweep.analysis.flop_conventions import mixed_conventions, same_share
from scalesweep.analysis.metrics import EPOCH_METRICS, EPOCH_PHASES, NEVER, Quantity, compared
from scalesweep.analysis.multiple import adjusted_p, holm_p
from scalesweep.analysis.stats import (
    CONFIDENCE,
    ONE_REPEAT,
    LogError,
    mean_interval,
    ratio_interval,
    stated_ratio_error,
    t_quantile,
    without_interval,
)
from scalesweep.analysis.types import Floats
from scalesweep.compare.inputs import Side
from scalesweep.compare.matching import Pair, SidePoint, by_experiment

IMPROVED, WORSE, UNCLEAR = "improved", "worse", "unclear"
ONLY_BASE, ONLY_NEW = "only base", "only new"
VERDICTS = (IMPROVED, WORSE, UNCLEAR, ONLY_BASE, ONLY_NEW)
# Why a ratio has no interval, in the words of a verdict.
SINGLE, IDENTICAL = "one repeat on a side", "identical repeats on a side"
_REASONS = {ONE_REPEAT: SINGLE, "identical repeats": IDENTICAL}

# In at most so many comparisons any change that is said first is a false one.
LEVEL = 0.04


@dataclass(frozen=True)
class Cell:
    """A metric of a point on one side: repeats, their mean and its 95 % interval."""

    repeats: int
    mean: float
    low: float
    high: float


NOTHING = Cell(0, math.nan, math.nan, math.nan)


@dataclass
class Change:
    """A metric of a point in one phase, on both sides (or one); numbers are NaN where missing.

    ``error`` is that of the ratio's logarithm (None: no interval); ``adjusted`` is ``p`` after
    Benjamini and Hochberg, among all points of the metric and phase; ``family`` is ``p`` after
    Holm, among all that the first lines on its experiment may name (``main_phases``), NaN else.
    """

    pair: Pair
    metric: str
    phase: str
    quantity: Quantity
    main: bool
    base: Cell
    new: Cell
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    error: LogError | None = None
    p: float = math.nan
    adjusted: float = math.nan
    family: float = math.nan
    verdict: str = UNCLEAR
    reason: str = ""

    @property
    def experiment(self) -> str:
        """That its pair is listed under."""
        return self.pair.experiment

    @property
    def stands(self) -> bool:
        """Whether it is improved or worse, and remains so among all of its experiment: at the
        level of a report's sentences, as Welch's t of few repeats is a bit liberal far out."""
        return self.verdict in (IMPROVED, WORSE) and self.family <= LEVEL


@dataclass(frozen=True)
class GeometricMean:
    """Geometric mean of the ratios of points; bounds are NaN where a point has no interval."""

    points: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Count:
    """Verdicts on one metric and phase of an experiment.

    ``compared``: ratios that have an interval; ``by_chance``: how many of them would be reported
    improved or worse if nothing had changed; ``kept``: verdicts of each kind that remain at 5 %
    after the correction; ``overall``: of the main metric, where two points or more have a ratio.
    """

    experiment: str
    metric: str
    phase: str
    quantity: Quantity
    main: bool
    verdicts: Mapping[str, int]
    compared: int
    by_chance: float
    kept: Mapping[str, int]
    overall: GeometricMean | None


def changes(pairs: Iterable[Pair], base: Side, new: Side) -> tuple[list[Change], list[str]]:
    """Every metric and phase of every pair, by experiment, its main metric first.

    Also returns, in words, the metrics that mean different things on the two sides, which are
    not compared.
    """
    changed: list[Change] = []
    unlike: dict[str, None] = {}
    for name, group in by_experiment(pairs):
        for benchmark in dict.fromkeys(pair.point.kind[0] for pair in group):
            of_it = [pair for pair in group if pair.point.kind[0] == benchmark]
            metrics = _Metrics(name, benchmark, of_it, (base, new))
            unlike.update(dict.fromkeys(metrics.unlike))
            changed += [
                _change(pair, metric, phase, metrics, first, second)
                for metric, phase in metrics.measures
                for pair in of_it
                if (first := _values(base, pair.base, metric, phase)).size
                | (second := _values(new, pair.new, metric, phase)).size
            ]
    _adjust(changed)
    return changed, list(unlike)


class _Metrics:
    """The metrics that the points of an experiment have, the main one first."""

    def __init__(
        self, experiment: str, benchmark: str, pairs: Sequence[Pair], sides: tuple[Side, Side]
    ) -> None:
        """Find what is compared of a benchmark's points in an experiment: metrics that mean the
        same on both sides, and which of them is the main one."""
        mine, theirs = (side.quantities(benchmark) for side in sides)
        self.quantities = {**theirs, **mine}
        self.unlike = []
        for name in [name for name in mine if name in theirs]:
            both = mine[name], theirs[name]
            meanings = [(q.unit, q.better, q.scope) for q in both]
            if meanings[0] != meanings[1] or both[0].formula != both[1].formula:
                del self.quantities[name]
                meant = " and ".join(f"{unit}, {better} is better" for unit, better, _ in meanings)
                if meanings[0] == meanings[1]:
                    meant = " and ".join(q.formula for q in both)
                self.unlike.append(f"{benchmark}: {name} ({meant})")
        for name, other in product(mine.keys() - theirs, theirs.keys() - mine):
            if same_share(name, other) and (why := mixed_conventions((name, other))):
                self.unlike.append(f"{benchmark}: {why}")
        entries = [e for s in sides for e in s.experiments if e["benchmark"] == benchmark]
        entries.sort(key=lambda entry: entry["name"] != experiment)
        wanted = [str(e["main_metric"]) for e in entries if e["main_metric"]][:1]
        wanted += ["total_throughput", *(name for e in entries for name in e["metrics"])]
        there = [
            (name, phase)
            for name in sorted(
                self.quantities, key=lambda n: wanted.index(n) if n in wanted else len(wanted)
            )
            for phase in _phases(name)
            if self._measured(name, phase, pairs, sides)
        ]
        self.main = there[0][0] if there else ""
        declared = {k: v for entry in entries for k, v in entry.get("compare", {}).items()}
        self.never = {name for name, _ in there if compared(name, declared, self.main) == NEVER}
        self.measures = there

    @staticmethod
    def _measured(metric: str, phase: str, pairs: Sequence[Pair], sides: tuple[Side, Side]) -> bool:
        base, new = sides
        rows = [row for pair in pairs if pair.base for row in pair.base.rows]
        more = [row for pair in pairs if pair.new for row in pair.new.rows]
        numbers = (base.numbers(metric, phase)[rows], new.numbers(metric, phase)[more])
        return any(bool(np.isfinite(values).any()) for values in numbers)


def _phases(metric: str) -> Sequence[str]:
    # A program may report one of our own metrics itself, as one number.
    return (*EPOCH_PHASES, "run") if metric in EPOCH_METRICS else ("run",)


def _values(side: Side, point: SidePoint | None, metric: str, phase: str) -> Floats:
    """The repeats' means that a point has on a side."""
    if point is None:
        return np.empty(0)
    values = side.numbers(metric, phase)[point.rows]
    return np.asarray(values[np.isfinite(values)], np.float64)


def _cell(values: Floats) -> Cell:
    if not values.size:
        return NOTHING
    interval = mean_interval(values)
    return Cell(values.size, float(values.mean()), interval.low, interval.high)


def _change(
    pair: Pair, metric: str, phase: str, metrics: _Metrics, base: Floats, new: Floats
) -> Change:
    """What became of a metric at a pair of points, by the values of both sides: a ratio with its
    interval and p value, or the reason why there is none."""
    quantity, main = metrics.quantities[metric], metric == metrics.main
    change = Change(pair, metric, phase, quantity, main, _cell(base), _cell(new))
    if not base.size or not new.size:
        change.verdict = ONLY_BASE if base.size else ONLY_NEW
        return change
    if metric in metrics.never:
        change.reason = "not compared: of runs that neither trained to a target nor a fixed amount"
        return change
    if min(base.min(), new.min()) <= 0:
        change.reason = "a value is not positive: no ratio"
        return change
    change.ratio = float(new.mean() / base.mean())
    if why := without_interval(base, new):
        change.reason = _REASONS[why]
        return change
    interval = ratio_interval(new, base)
    change.low, change.high = interval.low, interval.high
    change.error = stated_ratio_error(new, base)
    change.p = _p_value(change.ratio, change.error)
    above, below = change.low > 1, change.high < 1
    if above or below:
        change.verdict = IMPROVED if above == (quantity.better == "higher") else WORSE
    else:
        change.reason = "the 95 % interval includes 1"
    return change


def _p_value(ratio: float, error: LogError | None) -> float:
    """Two-sided p value of a ratio against 1, by the same Welch's t as the interval."""
    return math.nan if error is None else error.p(math.log(ratio))


def _adjust(changes: Sequence[Change]) -> None:
    """Corrected p values: each among all points of its benchmark, metric and phase; and that of
    what is said first among all of that of the experiment."""
    tested = [change for change in changes if not math.isnan(change.p)]
    first = main_phases(changes)
    lists: dict[tuple[str, str, str], list[Change]] = {}
    experiments: dict[str, list[Change]] = {}
    for change in tested:
        lists.setdefault((change.pair.point.kind[0], change.metric, change.phase), []).append(
            change
        )
        if first.get((change.pair.experiment, change.metric)) == change.phase:
            experiments.setdefault(change.pair.experiment, []).append(change)
    for several in lists.values():
        for change, adjusted in zip(several, adjusted_p([c.p for c in several]), strict=True):
            change.adjusted = adjusted
    for family in experiments.values():
        for change, adjusted in zip(family, holm_p([c.p for c in family]), strict=True):
            change.family = adjusted


def main_phases(changes: Iterable[Change | Count]) -> dict[tuple[str, str], str]:
    """The phase that is reported first of each experiment's main metrics: later epochs where there
    are any."""
    phases: dict[tuple[str, str], set[str]] = {}
    for change in changes:
        if change.main:
            phases.setdefault((change.experiment, change.metric), set()).add(change.phase)
    order = ("later", "run", "init")
    return {key: next(name for name in order if name in there) for key, there in phases.items()}


def counts(changes: Iterable[Change]) -> list[Count]:
    """Verdicts by experiment, metric and phase, in the order found."""
    groups: dict[tuple[str, str, str, str], list[Change]] = {}
    for change in changes:
        key = (change.pair.experiment, change.pair.point.kind[0], change.metric, change.phase)
        groups.setdefault(key, []).append(change)
    result = []
    for (experiment, _, metric, phase), group in groups.items():
        verdicts = Counter(change.verdict for change in group)
        compared = sum(change.error is not None for change in group)
        # A comparison with NaN is false.
        kept = Counter(change.verdict for change in group if change.adjusted <= 1 - CONFIDENCE)
        del kept[UNCLEAR]
        first = group[0]
        overall = geometric_mean(group) if first.main else None
        by_chance = (1 - CONFIDENCE) * compared
        numbers: tuple[Any, ...] = (verdicts, compared, by_chance, kept, overall)
        result.append(Count(experiment, metric, phase, first.quantity, first.main, *numbers))
    return result


def geometric_mean(group: Iterable[Change]) -> GeometricMean | None:
    """Geometric mean of the points' ratios; None for fewer than two points.

    Its interval is of these very points, not of others that might have been measured: their errors
    added up (independent, as points share no run), and Student's t with the degrees of freedom
    after Welch and Satterthwaite. Missing if a point has no interval.
    """
    ratios = [change for change in group if not math.isnan(change.ratio)]
    if len(ratios) < 2:
        return None
    n = len(ratios)
    value = math.exp(sum(math.log(change.ratio) for change in ratios) / n)
    errors = [change.error for change in ratios if change.error is not None]
    if len(errors) < n:
        return GeometricMean(n, value, math.nan, math.nan)
    variances = [error.error**2 for error in errors]
    total = sum(variances)
    shares = [variance / total for variance in variances]
    degrees = 1 / sum(s**2 / e.degrees for s, e in zip(shares, errors, strict=True))
    factor = math.exp(t_quantile(degrees) * math.sqrt(total) / n)
    return GeometricMean(n, value, value / factor, value * factor)
