"""What intervals of ratios cover that take the canary as covariate, by simulation.

Campaigns (tests/fakes/blocks.py: steady, states, trend, heavy tails,
unequal variances), in which the machine explains a share of the variance of a run within its block,
and a canary sees the machine with noise of its own. Of four kinds of canary one sees anything.
Printed per case: how often a covariate is chosen, the coverage of the interval that the rule gives
(with the covariate where one is chosen, else without), that of the intervals with a covariate
alone, and their median width over that of the intervals without.

    python -m bench.covariate [--json FILE] [--rounds N]
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.pairs import figure, line, write_json
from scalesweep.analysis.blocks import Blocks
from scalesweep.analysis.covariate import choose
from scalesweep.analysis.stats import LogError, t_quantile
from tests.fakes.blocks import KINDS, SPREAD, made_logs

POINTS, REPEATS = (4, 6, 12), (3, 5, 10)
SHARES = (0.0, 0.25, 0.5, 0.8)  # of the variance within blocks that the canary explains
LOOKED = 4
LEAST, MOST = 0.93, 0.97


@dataclass(frozen=True)
class Covered:
    """Over campaigns and pairs: shares, and the median width."""

    chosen: float  # of campaigns that use a covariate
    without: float  # coverage of intervals without
    by_rule: float  # of those that the rule gives
    with_one: float  # of those with a covariate, where one is chosen
    width: float  # with / without, median, where one is chosen


def covered(kind: str, share: float, points: int, repeats: int, rounds: int) -> Covered:
    """Simulate a case."""
    key = (KINDS.index(kind), round(100 * share), points, repeats)
    generator = np.random.default_rng((11, *key))
    pairs = [(i, j) for i in range(points) for j in range(i)]
    plain: list[bool] = []
    ruled: list[bool] = []
    shown: list[bool] = []
    widths: list[float] = []
    chosen = 0
    for _ in range(rounds):
        logs = made_logs(generator, kind, points, repeats)
        machine = generator.normal(size=logs.shape)
        # The machine takes the place of a share of the variance.
        logs = logs * np.sqrt(1 - share) + SPREAD * np.sqrt(share) * machine
        looks = {f"blind {n}": generator.normal(size=logs.shape) for n in range(LOOKED - 1)}
        looks["sees"] = machine
        blocks = Blocks(logs, {place: place for place in range(points)})
        covariate = choose(blocks, looks)
        chosen += covariate is not None
        for top, bottom in pairs:
            error = blocks.ratio_error(top, bottom)
            if error is None:
                continue
            value = float(logs[top].mean() - logs[bottom].mean())
            holds = abs(value) <= _half(error)
            plain.append(holds)
            better = covariate.ratio(top, bottom) if covariate else None
            if better is None:
                ruled.append(holds)
                continue
            ruled.append(abs(better[0]) <= _half(better[1]))
            shown.append(ruled[-1])
            widths.append(_half(better[1]) / _half(error))
    without, by_rule, with_it = (
        float(np.mean(hits)) if hits else float("nan") for hits in (plain, ruled, shown)
    )
    return Covered(
        chosen / rounds,
        without,
        by_rule,
        with_it,
        float(np.median(widths)) if widths else float("nan"),
    )


def _half(error: LogError) -> float:
    return t_quantile(error.degrees) * error.error


def simulate(rounds: int) -> dict[str, Covered]:
    """Every case, by what it is in words."""
    return {
        f"{kind}, {share:.0%} explained, {points} points, {repeats} repeats": covered(
            kind, share, points, repeats, rounds * POINTS[0] // points
        )
        for kind in KINDS
        for share in SHARES
        for points in POINTS
        for repeats in REPEATS
    }


def figures(covered: dict[str, Covered]) -> list[dict[str, Any]]:
    """Rows of the table: the extremes of each kind of data, and widths by explained share."""
    rows = []
    for kind in KINDS:
        values = [case.by_rule for name, case in covered.items() if name.startswith(f"{kind},")]
        rows.append(figure(f"coverage by rule, {kind}: least", min(values), "", LEAST, "higher"))
        rows.append(figure(f"coverage by rule, {kind}: most", max(values), "", MOST))
    for share in SHARES:
        cases = [case for name, case in covered.items() if f" {share:.0%} explained" in name]
        words = f"{share:.0%} explained"
        rows.append(figure(f"campaigns with a covariate, {words}", _mean(cases, "chosen"), ""))
        rows.append(figure(f"median width with / without, {words}", _mean(cases, "width"), ""))
    return rows


def _mean(cases: list[Covered], name: str) -> float:
    return float(np.nanmean([getattr(case, name) for case in cases]))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=2000, help="campaigns of 4 points")
    args = parser.parse_args()
    covered = simulate(args.rounds)
    for name, case in covered.items():
        print(
            f"{name}: chosen {case.chosen:.3f}, coverage {case.without:.3f} without, "
            f"{case.by_rule:.3f} by rule, {case.with_one:.3f} with, width {case.width:.2f}"
        )
    rows = figures(covered)
    for row in rows:
        print(line(row))
    cases = {name: vars(case) for name, case in covered.items()}
    write_json({"rounds": args.rounds, "cases": cases, "figures": rows}, args.json)


if __name__ == "__main__":
    main()
