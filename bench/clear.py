"""How often a sentence that is marked clear is false, by simulation (docs/methods/clear.md).

Campaigns in which nothing is there, through the real tables and findings, three repeats each: the
share that has any clear sentence, for noise that is normal, heavy-tailed, skewed, with outliers, of
a machine in another state in each block or in one of two in each run, fading from run to run, or
growing with the scale, alone or with each of these. And steps with two losses of 12 and 10 ms, also
one ten times as noisy as the other, or several equal ones: the share in which a wrong one is called
the largest, and in which one of 30 ms among others of 10, 2 and 1 ms is.

    python -m bench.clear [--json FILE] [--campaigns N]
"""

import argparse
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, line, write_json
from tests.fakes import noise
from tests.fakes.losses import named
from tests.fakes.no_difference import EXPERIMENTS, KINDS, share

REPEATS = 3
MOST = 0.05
SDS = (3.0, 5.0, 8.0)
# Losses are drawn so many times as often as campaigns: they take no tables.
MORE = 10


def campaigns(count: int) -> list[dict[str, Any]]:
    """Shares of campaigns with a false clear sentence, and of all of them."""
    rows, shares = [], []
    for name in EXPERIMENTS:
        for kind in KINDS:
            shares.append(share(name, kind, REPEATS, count))
            words = f"campaigns with a false clear sentence, {name}, {kind} noise"
            rows.append(figure(words, shares[-1], "", MOST))
    together = sum(shares) / len(shares)
    return [*rows, figure("campaigns with a false clear sentence, all", together, "", MOST)]


def losses(count: int) -> list[dict[str, Any]]:
    """Shares of steps whose largest loss is named wrongly, and rightly."""
    rows = []
    for kind in noise.KINDS:
        for sd in SDS:
            at = f"sd {sd:g} ms, {kind} noise"
            wrong, _ = named((12, 10), sd, REPEATS, kind, count)
            rows.append(figure(f"wrong largest loss, 12 against 10 ms, {at}", wrong, "", MOST))
            equal = max(named((12,) * k, sd, REPEATS, kind, count)[0] for k in range(2, 7))
            rows.append(figure(f"a largest of 2 to 6 equal losses, {at}", equal, "", MOST))
            _, right = named((30, 10, 2, 1), sd, REPEATS, kind, count)
            rows.append(figure(f"largest loss found, 30 against 10 ms, {at}", right, ""))
        for sds in (10, 1), (1, 10):
            wrong = max(
                named((12, 10), sds, repeats, kind, count, reference=reference)[0]
                for repeats in (3, 5)
                for reference in (0.1, 1)
            )
            words = f"wrong largest loss, 12 against 10 ms, sds {sds[0]} and {sds[1]} ms, {kind}"
            rows.append(figure(words, wrong, "", MOST))
    return rows


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--campaigns", type=int, default=200, help="of each experiment and noise")
    args = parser.parse_args()
    rows = [*losses(args.campaigns * MORE), *campaigns(args.campaigns)]
    for row in rows:
        print(line(row))
    write_json({"campaigns": args.campaigns, "figures": rows}, args.json)


if __name__ == "__main__":
    main()
