"""What 95 % intervals from randomised blocks cover and how wide they are, by simulation.

For every kind of made data (tests/fakes/blocks.py: steady, a machine in another state in each
block, a trend, heavy tails, unequal variances), 3, 6 and 12 points and 3, 5, 10 and 20 repeats: the
share of intervals of means and of ratios that hold the truth, over all points and pairs, and the
median width over that of intervals of each point alone (Student's t, Welch's t, the bootstrap from
20 repeats on). Means under a trend are covered too often, by both: what the trend adds to the
spread of repeats hardly moves their mean over the whole campaign.

    python -m bench.intervals [--json FILE] [--rounds N]
"""

import argparse
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, line, write_json
from tests.fakes.blocks import KINDS, Coverage, coverage, growing

POINTS, REPEATS = (3, 6, 12), (3, 5, 10, 20)
LEAST, MOST = 0.93, 0.97


def simulate(rounds: int) -> dict[str, dict[tuple[int, int], Coverage]]:
    """Coverage by kind, points and repeats."""
    coverages: dict[str, dict[tuple[int, int], Coverage]] = {}
    for kind in KINDS:
        for points in POINTS:
            for repeats in REPEATS:
                # As many points in all, less where the bootstrap that is compared with takes long.
                several = rounds * POINTS[0] // points // (3 if repeats >= 20 else 1)
                coverages.setdefault(kind, {})[points, repeats] = coverage(
                    kind, points, repeats, several
                )
    return coverages


def figures(coverages: dict[str, dict[tuple[int, int], Coverage]]) -> list[dict[str, Any]]:
    """Rows of the table: the extremes over points and repeats, and widths at 3 and 5 repeats."""
    rows = []
    for kind, cases in coverages.items():
        for what in ("ratio", "mean"):
            values = [getattr(case, what) for case in cases.values()]
            most = None if (kind, what) == ("trend", "mean") else MOST
            name = f"coverage of {what}s, {kind}"
            rows.append(figure(f"{name}: least", min(values), "", LEAST, "higher"))
            rows.append(figure(f"{name}: most", max(values), "", most))
            least = min(getattr(case, f"least_{what}") for case in cases.values())
            rows.append(figure(f"{name}: of the point covered least", least, "", None, "higher"))
            for repeats in REPEATS[:2]:
                width = getattr(cases[6, repeats], f"{what}_width")
                words = f"median width of {what}s / each point alone, {kind}, 6 points x {repeats}"
                rows.append(figure(words, width, ""))
    return rows


def noisier(rounds: int) -> list[dict[str, Any]]:
    """Noise that grows along the points: coverage of the noisiest, power of the quietest pair."""
    rows = []
    for points in (4, 9):
        for ratio in (1.0, 3.0, 10.0):
            power = growing(points, 3, ratio, rounds)
            at = f"noise x{ratio:g} over {points} points"
            rows.append(figure(f"{at}: noisiest covered", power.noisiest, "", LEAST, "higher"))
            words = f"{at}: power of the quietest pair / Welch's"
            rows.append(figure(words, power.power / power.power_alone, "", 0.9, "higher"))
    return rows


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=3000, help="campaigns of 3 points")
    args = parser.parse_args()
    coverages = simulate(args.rounds)
    rows = [*figures(coverages), *noisier(args.rounds)]
    for row in rows:
        print(line(row))
    cases = {
        kind: {f"{points} points, {repeats} repeats": vars(case) for (points, repeats), case
               in by_size.items()}
        for kind, by_size in coverages.items()
    }  # fmt: skip
    write_json({"rounds": args.rounds, "cases": cases, "figures": rows}, args.json)


if __name__ == "__main__":
    main()
