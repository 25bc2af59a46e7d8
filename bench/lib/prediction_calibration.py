"""How the values of ``scalesweep.analysis.prediction.calibration`` were found.

Every forecast of every origin of the published series (``prediction_series``) counts, without what
is known of the machine, with the border of its nodes, and among similar series; each cluster as
much as any other, and so do simulated laws without and with a change of regime. The values are
those of the best likelihood, about forecasts that are the median of what was measured (``_shift``).
Then intervals are made so many times as wide that 90 % and 95 % ones hold as many of the published
rows up to the trusted distance: **of each cluster by the values of the best likelihood without
it**, because those that were found with it hold it too well. Rows beyond a border that similar
series tell of have no factor: their interval is that of one more such series. What a border costs
that no count shows comes from clusters that have one (``_with_border``).

    python -m bench.lib.prediction_calibration [--series N]
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaln, stdtrit

from bench.lib.prediction_laws import STRONG, WEAK, simulate
from bench.lib.prediction_series import PUBLIC
from scalesweep.analysis.prediction.calibration import Calibration, Side
from scalesweep.analysis.prediction.forecast import FARTHEST, predict
from scalesweep.analysis.prediction.intervals import (
    HIGH,
    LOW,
    Signs,
    bounds,
    limits,
    shifts,
    sources,
)
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.types import Floats

SEED = 20_261_122  # not that of bench.prediction
OF_A_KIND = 10
# Levels of intervals, which are the shares of the rows that they have to hold.
LEVELS = (0.9, 0.95)
# Weight of all published series; simulated ones without and with a change of regime have 1 each.
PUBLIC_WEIGHT = 2.0
# One side of a 95 % interval.
BORDER_LEVEL = 0.975
# Keeps values where they are of which the rows say nothing.
PULL = 3e-3
# Of growth across a border among similar series where no published ones tell.
SPREAD = 0.5
# Where the search begins: what the calibration of an earlier version had, without newer parts.
START = {
    "weak": Calibration(
        shift=0.0, rate=0.0419, strength=41.9, few=0.1, spread=SPREAD, degrees=3.0,
        low=Side(0.228, 0.0946, 0.1, 0.548, 0.448, 0.01),
        high=Side(0.219, 0.386, 0.3, 1.08, 0.121, 0.2),
    ),
    "strong": Calibration(
        shift=0.0, rate=0.0348, strength=15.2, few=0.1, spread=SPREAD, degrees=3.0,
        low=Side(0.495, 0.0651, 0.1, 0.679, 0.0387, 0.01),
        high=Side(0.512, 0.492, 0.3, 1.52, 0.0912, 0.2),
    ),
}  # fmt: skip
SHARED = ("rate", "strength", "few", "degrees")
OF_A_SIDE = ("models", "regime", "newest", "power", "slope", "border")
# Of a side: what the factor makes wider.
WIDENED = ("models", "regime", "newest", "slope", "border")
ROOM = 4.0  # logarithm
# Degrees of freedom of Student's t: none of lighter tails than these would be told from them.
DEGREES = (2.5, 12.0)


class Way(NamedTuple):
    """A series as it is forecast: its weight, cluster and ranks of a node, and whether the rows
    beyond a border are those that count, not the others."""

    series: Series
    weight: float
    across: bool = False
    cluster: str = ""
    per_node: int = 1


@dataclass(frozen=True, eq=False)
class Rows:
    """Forecasts of many series, ``[row]``: measured less forecast (logarithms of the cost), what
    they show of their uncertainty, weights, whether they are of the smaller half, the cluster, and
    the ranks of a node there."""

    error: Floats
    signs: Signs
    weight: Floats
    half: Floats
    cluster: NDArray[np.str_]
    nodes: Floats


def rows(many: Iterable[Way]) -> Rows:
    """The rows of every origin of series."""
    errors, signs, weights, halves, clusters, nodes = [], [], [], [], [], []
    for series, weight, across, cluster, per_node in many:
        own: list[tuple[Floats, Signs, Floats]] = []
        for k in range(3, len(series.ranks)):
            known, targets = series.first(k), series.ranks[k:]
            if refusal(known):
                continue
            said = predict(known, targets)
            crosses = (said.signs.border > 0) | (said.signs.similar > 0)
            kept = crosses == across if series.borders is not None else np.ones(len(targets), bool)
            # What is erratic widens intervals beyond what is calibrated, never less.
            seen = Signs(*(part[kept] for part in said.signs))._replace(
                erratic=np.zeros(kept.sum())
            )
            error = (np.log(series.cost[k:]) - said.final.log_cost[k:])[kept]
            own.append((error, seen, np.full(len(error), float(k == (len(series.ranks) + 1) // 2))))
        total = sum(len(error) for error, _, _ in own)
        for error, seen, half in own:
            errors.append(error)
            signs.append(seen)
            halves.append(half)
            clusters.append(np.full(len(error), cluster))
            nodes.append(np.full(len(error), float(per_node)))
            weights.append(np.full(len(error), weight / max(total, 1)))
    joined = Signs(*(np.concatenate(parts) for parts in zip(*signs, strict=True)))
    return Rows(
        np.concatenate(errors), joined, np.concatenate(weights), np.concatenate(halves),
        np.concatenate(clusters), np.concatenate(nodes),
    )  # fmt: skip


@cache
def _of_cluster(scaling: str, cluster: str) -> Rows:
    """The rows of the published series of a cluster."""
    own = [public for public in PUBLIC if (public.scaling, public.cluster) == (scaling, cluster)]
    ways: list[Way] = []
    for public in own:
        weight, where = 1 / len(own), (public.cluster, public.ranks_per_node)
        ways.append(Way(public.series(), weight, False, *where))
        ways.append(Way(public.with_borders(), weight, False, *where))
        if (near := public.among_similar()).similar:
            ways.append(Way(near, weight, True, *where))
    return rows(ways)


@cache
def published(scaling: str, without: frozenset[str] = frozenset()) -> Rows:
    """The rows of published series but those of some clusters: each cluster counts as much as any
    other."""
    names = dict.fromkeys(public.cluster for public in PUBLIC if public.scaling == scaling)
    every = [_of_cluster(scaling, name) for name in names if name not in without]
    joined = [np.concatenate(parts) for parts in zip(*(part.signs for part in every), strict=True)]
    error, weight, half, cluster, nodes = (
        np.concatenate([getattr(part, name) for part in every])
        for name in ("error", "weight", "half", "cluster", "nodes")
    )
    return Rows(error, Signs(*joined), weight, half, cluster, nodes)


@cache
def simulated(scaling: str, of_a_kind: int, change: bool) -> Rows:
    """The rows of simulated laws."""
    random = np.random.default_rng(SEED + change)
    kinds = STRONG if scaling == "strong" else WEAK
    many = of_a_kind * (len(WEAK) // len(kinds))
    drawn = (simulate(kind, random, change) for kind in kinds for _ in range(many))
    return rows(Way(make_series(series.ranks, series.cost, scaling), 1.0) for series in drawn)


def _shift(them: Rows) -> float:
    """What costs grow beyond what is said, over the growth that is expected: the median, every
    cluster counting as much as any other; 0 at least."""
    near = (them.signs.border == 0) & (them.signs.similar == 0) & (them.signs.change > 0)
    more = them.error[near] / them.signs.change[near]
    order = np.argsort(more)
    # Rows count by the growth that is expected of them: of next to none nothing can be said.
    weight = (them.weight * them.signs.change)[near][order]
    half = int(np.searchsorted(np.cumsum(weight), weight.sum() / 2))
    return max(float(more[order][half]), 0.0)


def _spread(them: Rows) -> float:
    """Standard deviation of the growth across a border among similar series over that growth: of
    each cluster one observation, their root mean square; that of ``START`` without any."""
    beyond = them.signs.similar > 0
    alone = them.signs.growth * np.sqrt(1 + 1 / np.maximum(them.signs.similar, 1.0))
    squares = (them.error / np.where(beyond, alone, 1.0)) ** 2
    means = [
        float(np.average(squares[here], weights=them.weight[here]))
        for name in sorted(set(them.cluster.tolist()))
        if (here := beyond & (them.cluster == name)).any()
    ]
    return float(np.sqrt(np.mean(means))) if means else SPREAD


def _own(them: Rows) -> Rows:
    """The rows that similar series do not tell."""
    kept = them.signs.similar == 0
    return Rows(
        them.error[kept], Signs(*(part[kept] for part in them.signs)), them.weight[kept],
        them.half[kept], them.cluster[kept], them.nodes[kept],
    )  # fmt: skip


def _values(rule: Calibration) -> list[float]:
    sides = [getattr(side, name) for side in (rule.low, rule.high) for name in OF_A_SIDE]
    return [*(getattr(rule, name) for name in SHARED), *sides]


def _rule(values: Sequence[float], shift: float, spread: float) -> Calibration:
    first, size = len(SHARED), len(OF_A_SIDE)
    low, high = (Side(*values[i : i + size]) for i in (first, first + size))
    shared = dict(zip(SHARED, values[:first], strict=True))
    return Calibration(shift=shift, spread=spread, **shared, low=low, high=high)


def widened(rule: Calibration, factor: float) -> Calibration:
    """The rule with what is calibrated so many times as wide."""

    def side(half: Side) -> Side:
        return replace(half, **{name: factor * getattr(half, name) for name in WIDENED})

    return replace(rule, low=side(rule.low), high=side(rule.high))


def _loss(logs: Floats, start: Floats, sets: Sequence[tuple[Rows, float]], shift: float) -> float:
    """The negative log likelihood: Student's t with a scale for each side."""
    rule = _rule(np.exp(logs).tolist(), shift, SPREAD)
    degrees = float(np.clip(rule.degrees, *DEGREES))
    loss = PULL * float(((logs - start) ** 2).sum())
    at_0 = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - np.log(degrees) / 2
    for them, weight in sets:
        total = sources(them.signs, rule).total
        error = them.error - shifts(them.signs, rule)
        off = error / np.where(error > 0, total[HIGH], total[LOW])
        each = np.log(total[LOW] + total[HIGH]) + (degrees + 1) / 2 * np.log1p(off**2 / degrees)
        loss += weight * float(np.average(each - at_0, weights=them.weight))
    return loss


def held(them: Rows, rule: Calibration, level: float) -> NDArray[np.bool_]:
    """Whether each row is within its interval."""
    total, within = sources(them.signs, rule).total, limits(them.signs)
    low, high = bounds(shifts(them.signs, rule), total, rule, level, within)
    return np.asarray((low <= them.error) & (them.error <= high))


def covered(them: Rows, rule: Calibration, level: float, only: Floats | None = None) -> float:
    """Share of the rows within their interval, by weight; of those only whose factor is 1."""
    weight = them.weight if only is None else them.weight * only
    return float(np.average(held(them, rule, level), weights=weight))


@cache
def likeliest(scaling: str, without: frozenset[str], of_a_kind: int) -> Calibration:
    """The values of the best likelihood of simulated series and of published ones but those of some
    clusters."""
    known = published(scaling, without)
    sets = [(_own(known), PUBLIC_WEIGHT)]
    sets += [(simulated(scaling, of_a_kind, change), 1.0) for change in (False, True)]
    start, more = np.log(_values(START[scaling])), _shift(known)
    around = [(value - ROOM, value + ROOM) for value in start]
    # Without two clusters the search begins where that without the first of them ended.
    first = start if len(without) < 2 else np.log(_values(
        likeliest(scaling, frozenset(sorted(without)[:1]), of_a_kind)
    ))  # fmt: skip
    best = minimize(_loss, first, (start, sets, more), "L-BFGS-B", bounds=around).x
    rule = _rule(np.exp(best).tolist(), more, _spread(known))
    return replace(rule, degrees=float(np.clip(rule.degrees, *DEGREES)))


@cache
def calibrate(scaling: str, without: frozenset[str], of_a_kind: int) -> Calibration:
    """The rule of published series but those of some clusters, and of simulated ones."""
    rule = likeliest(scaling, without, of_a_kind)
    known = published(scaling, without)
    each = [
        (_of_cluster(scaling, name), likeliest(scaling, without | {name}, of_a_kind))
        for name in sorted(set(known.cluster.tolist()))
    ]
    factors = np.arange(0.5, 4.0, 0.02).tolist()
    wanted = float(np.mean(LEVELS))
    factor = next(factor for factor in factors if _left_out(each, factor, scaling) >= wanted)
    return _with_border(widened(rule, factor), known)


def _left_out(each: Sequence[tuple[Rows, Calibration]], factor: float, scaling: str) -> float:
    """Share of the rows of clusters, by weight, that intervals of rules without them hold, made so
    many times as wide: the mean over ``LEVELS``, of smaller halves and of all origins, up to the
    trusted distance, but for rows that similar series tell."""
    shares = []
    for level, half in product(LEVELS, (False, True)):
        inside, weights = [], []
        for them, rule in each:
            near = (them.signs.distance <= np.log2(FARTHEST[scaling])) & (them.signs.border == 0)
            near &= them.signs.similar == 0
            inside.append(held(them, widened(rule, factor), level))
            weights.append(them.weight * near * (them.half if half else 1.0))
        total = np.concatenate(weights)
        shares.append(float(np.average(np.concatenate(inside), weights=total)))
    return float(np.mean(shares))


def _with_border(rule: Calibration, them: Rows) -> Calibration:
    """The rule with what a border may cost that no count shows, from the errors beyond such ones.

    What it costs is the machine's more than the series', so that a cluster is one observation: the
    mean error of its rows. A further cluster's is within Student's t, with one degree of freedom
    less than there are clusters, of their root mean square. It is no less than what holds
    a level of all rows.
    """
    beyond = (them.signs.border > 0) & (them.nodes > 1)
    means = np.array([
        float(np.average(them.error[here], weights=them.weight[here]))
        for name in sorted(set(them.cluster.tolist()))
        if (here := beyond & (them.cluster == name)).any()
    ])  # fmt: skip
    if len(means) < 2:
        return rule
    ratio = stdtrit(len(means) - 1, BORDER_LEVEL) / stdtrit(rule.degrees, BORDER_LEVEL)
    root = float(np.sqrt(np.mean(means**2) * (1 + 1 / len(means))) * ratio)
    while True:
        wide = replace(rule, high=replace(rule.high, border=root))
        if all(held(them, wide, lv)[beyond].mean() >= lv for lv in LEVELS):
            return wide
        root *= 1.05


def text_of(rules: Mapping[str, Calibration]) -> str:
    """The rules as they stand in the module."""
    lines = []
    for name, rule in rules.items():
        shared = ", ".join(
            f"{key}={getattr(rule, key):.3g}" for key in ("shift", "spread", *SHARED)
        )
        lines.append(f'    "{name}": Calibration(')
        lines.append(f"        {shared},")
        for key in ("low", "high"):
            side = getattr(rule, key)
            values = ", ".join(f"{part}={getattr(side, part):.3g}" for part in OF_A_SIDE)
            lines += [f"        {key}=Side(", f"            {values},", "        ),"]
        lines.append("    ),")
    return "\n".join(lines)


def main() -> None:
    """Print the rules, and how much they hold of the rows they were made from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=OF_A_KIND, help="simulated ones of a kind")
    args = parser.parse_args()
    rules = {scaling: calibrate(scaling, frozenset(), args.series) for scaling in START}
    print(text_of(rules))
    for scaling, rule in rules.items():
        sets = {
            "published": published(scaling),
            "simulated": simulated(scaling, args.series, False),
            "simulated, change of regime": simulated(scaling, args.series, True),
        }
        for name, them in sets.items():
            shares = ", ".join(f"{covered(them, rule, lv):.1%} in {lv:.0%}" for lv in LEVELS)
            print(f"{scaling}, {name}: {shares}")


if __name__ == "__main__":
    main()
