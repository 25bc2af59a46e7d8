"""How the values of ``scalesweep.analysis.prediction.calibration`` were found.

Every forecast of every origin of the published series (``prediction_series``) counts, without what
is known of the machine, with the border of its nodes, and among similar series; each cluster as
much as any other, and so do simulated laws without and with a change of regime. The values are
those of the best likelihood, then every interval is made so many times as wide that 90 % and 95 %
ones hold as many of the published rows up to the trusted distance as ``WANTED``, of smaller halves
and of all origins, each cluster as much as any other. What a border costs that no count shows comes
from clusters that have one (``_with_border``).

    python -m bench.lib.prediction_calibration [--series N]
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaln, stdtrit

from bench.lib.prediction_laws import STRONG, WEAK, simulate
from bench.lib.prediction_series import PUBLIC, PublicSeries
from scalesweep.analysis.prediction.calibration import Calibration, Side
from scalesweep.analysis.prediction.forecast import FARTHEST, predict
from scalesweep.analysis.prediction.intervals import HIGH, LOW, Signs, bounds, sources
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.types import Floats

SEED = 20_261_122  # not that of bench.prediction
OF_A_KIND = 10
# Of the rows: that 90 % and 95 % intervals have to hold.
WANTED = {0.9: 0.89, 0.95: 0.935}
# Weight of all published series; simulated ones without and with a change of regime have 1 each.
PUBLIC_WEIGHT = 2.0
# One side of a 95 % interval.
BORDER_LEVEL = 0.975
# Keeps values where they are of which the rows say nothing.
PULL = 3e-3
# Where the search begins: what the calibration of an earlier version had, without newer parts.
START = {
    "weak": Calibration(
        scatter=0.0069, rate=0.0419, strength=41.9, few=0.1, spread=0.5, degrees=3.0,
        low=Side(0.428, 0.228, 0.0946, 0.1, 0.548, 0.448, 0.01, 0.7),
        high=Side(1.09, 0.219, 0.386, 0.3, 1.08, 0.121, 0.2, 0.7),
    ),
    "strong": Calibration(
        scatter=0.0104, rate=0.0348, strength=15.2, few=0.1, spread=0.5, degrees=3.0,
        low=Side(0.364, 0.495, 0.0651, 0.1, 0.679, 0.0387, 0.01, 0.7),
        high=Side(0.972, 0.512, 0.492, 0.3, 1.52, 0.0912, 0.2, 0.7),
    ),
}  # fmt: skip
SHARED = ("scatter", "rate", "strength", "few", "spread", "degrees")
OF_A_SIDE = ("noise", "models", "regime", "newest", "power", "slope", "border", "similar")
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
    errors, found, weights, halves, clusters, nodes = [], [], [], [], [], []
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
            error = (np.log(series.cost[k:]) - np.log(said.cost))[kept]
            own.append((error, seen, np.full(len(error), float(k == (len(series.ranks) + 1) // 2))))
        total = sum(len(error) for error, _, _ in own)
        for error, seen, half in own:
            errors.append(error)
            found.append(seen)
            halves.append(half)
            clusters.append(np.full(len(error), cluster))
            nodes.append(np.full(len(error), float(per_node)))
            weights.append(np.full(len(error), weight / max(total, 1)))
    joined = Signs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return Rows(
        np.concatenate(errors), joined, np.concatenate(weights), np.concatenate(halves),
        np.concatenate(clusters), np.concatenate(nodes),
    )  # fmt: skip


def published(series: Sequence[PublicSeries]) -> Rows:
    """The rows of published series: each cluster counts as much as any other."""
    sizes = Counter(one.cluster for one in series)
    ways: list[Way] = []
    for one in series:
        weight, where = 1 / sizes[one.cluster], (one.cluster, one.ranks_per_node)
        ways.append(Way(one.series(), weight, False, *where))
        ways.append(Way(one.with_borders(), weight, False, *where))
        if (near := one.among_similar()).similar:
            ways.append(Way(near, weight, True, *where))
    return rows(ways)


@cache
def simulated(scaling: str, of_a_kind: int, change: bool) -> Rows:
    """The rows of simulated laws."""
    random = np.random.default_rng(SEED + change)
    kinds = STRONG if scaling == "strong" else WEAK
    many = of_a_kind * (len(WEAK) // len(kinds))
    drawn = (simulate(kind, random, change) for kind in kinds for _ in range(many))
    return rows(Way(make_series(one.ranks, one.cost, scaling), 1.0) for one in drawn)


def _values(rule: Calibration) -> list[float]:
    sides = [getattr(side, name) for side in (rule.low, rule.high) for name in OF_A_SIDE]
    return [*(getattr(rule, name) for name in SHARED), *sides]


def _rule(values: Sequence[float]) -> Calibration:
    first, size = len(SHARED), len(OF_A_SIDE)
    low, high = (Side(*values[i : i + size]) for i in (first, first + size))
    return Calibration(**dict(zip(SHARED, values[:first], strict=True)), low=low, high=high)


def widened(rule: Calibration, factor: float) -> Calibration:
    """The rule with every interval so many times as wide."""
    scaled = ("noise", "models", "regime", "newest", "slope", "border", "similar")

    def side(one: Side) -> Side:
        return replace(one, **{name: factor * getattr(one, name) for name in scaled})

    return replace(rule, low=side(rule.low), high=side(rule.high))


def _loss(logs: Floats, start: Floats, sets: Sequence[tuple[Rows, float]]) -> float:
    """The negative log likelihood: Student's t with a scale for each side."""
    rule = _rule(np.exp(logs).tolist())
    degrees = float(np.clip(rule.degrees, *DEGREES))
    loss = PULL * float(((logs - start) ** 2).sum())
    at_0 = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - np.log(degrees) / 2
    for them, weight in sets:
        total = sources(them.signs, rule).total
        off = them.error / np.where(them.error > 0, total[HIGH], total[LOW])
        each = np.log(total[LOW] + total[HIGH]) + (degrees + 1) / 2 * np.log1p(off**2 / degrees)
        loss += weight * float(np.average(each - at_0, weights=them.weight))
    return loss


def held(them: Rows, rule: Calibration, level: float) -> NDArray[np.bool_]:
    """Whether each row is within its interval."""
    low, high = bounds(np.zeros(len(them.error)), sources(them.signs, rule).total, rule, level)
    return np.asarray((low <= them.error) & (them.error <= high))


def covered(them: Rows, rule: Calibration, level: float, only: Floats | None = None) -> float:
    """Share of the rows within their interval, by weight; of those only whose factor is 1."""
    weight = them.weight if only is None else them.weight * only
    return float(np.average(held(them, rule, level), weights=weight))


def calibrate(scaling: str, series: Sequence[PublicSeries], of_a_kind: int) -> Calibration:
    """The rule of these published series and simulated ones."""
    known = published([one for one in series if one.scaling == scaling])
    sets = [(known, PUBLIC_WEIGHT)]
    sets += [(simulated(scaling, of_a_kind, change), 1.0) for change in (False, True)]
    start = np.log(_values(START[scaling]))
    around = [(value - ROOM, value + ROOM) for value in start]
    best = minimize(_loss, start, (start, sets), "L-BFGS-B", bounds=around).x
    rule = _rule(np.exp(best).tolist())
    rule = replace(rule, degrees=float(np.clip(rule.degrees, *DEGREES)))
    near = np.asarray(
        (known.signs.distance <= np.log2(FARTHEST[scaling])) & (known.signs.border == 0), np.float64
    )
    for factor in np.arange(0.7, 2.5, 0.02):
        wide = widened(rule, float(factor))
        shares = {lv: [covered(known, wide, lv, only) for only in (near, near * known.half)]
                  for lv in WANTED}  # fmt: skip
        if all(min(shares[level]) >= least for level, least in WANTED.items()):
            break
    return _with_border(wide, known)


def _with_border(rule: Calibration, them: Rows) -> Calibration:
    """The rule with what a border may cost that no count shows, from the errors beyond such ones.

    What it costs is the machine's more than the series', so that a cluster is one observation: the
    mean error of its rows. A further cluster's is within Student's t, with one degree of freedom
    less than there are clusters, of their root mean square. It is no less than what holds
    ``WANTED`` of all rows.
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
        if all(held(them, wide, lv)[beyond].mean() >= least for lv, least in WANTED.items()):
            return wide
        root *= 1.05


def text_of(rules: Mapping[str, Calibration]) -> str:
    """The rules as they stand in the module."""
    lines = []
    for name, rule in rules.items():
        shared = ", ".join(f"{key}={getattr(rule, key):.3g}" for key in SHARED)
        lines.append(f'    "{name}": Calibration(')
        lines.append(f"        {shared},")
        for key in ("low", "high"):
            side = getattr(rule, key)
            values = ", ".join(f"{part}={getattr(side, part):.3g}" for part in OF_A_SIDE)
            lines.append(f"        {key}=Side({values}),")
        lines.append("    ),")
    return "\n".join(lines)


def main() -> None:
    """Print the rules, and how much they hold of the rows they were made from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=OF_A_KIND, help="simulated ones of a kind")
    args = parser.parse_args()
    rules = {scaling: calibrate(scaling, PUBLIC, args.series) for scaling in START}
    print(text_of(rules))
    for scaling, rule in rules.items():
        sets = {
            "published": published([one for one in PUBLIC if one.scaling == scaling]),
            "simulated": simulated(scaling, args.series, False),
            "simulated, change of regime": simulated(scaling, args.series, True),
        }
        for name, them in sets.items():
            shares = ", ".join(f"{covered(them, rule, lv):.1%} in {lv:.0%}" for lv in WANTED)
            print(f"{scaling}, {name}: {shares}")


if __name__ == "__main__":
    main()
