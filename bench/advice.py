"""What node-hours buy by advice, and by the ways in which studies are usually laid out.

Of simulated laws and published series (``bench.lib.advice_methods``) the largest count is to be
predicted, and everything below it can be measured: by advice in a closed loop (measure, advise,
measure), by a grid of doubling counts with one run or three of each, by Extra-P's published rule
(at least five counts, five runs of each: Extra-P's documentation; Ritter et al., IPDPS 2020), and
at random. All are charged ranks times time, and all predict with the same models, so only the
choice of points differs. Costs are over that of the whole doubling grid below the target, one run
of each count.

    python -m bench.advice [--series N] [--json FILE]
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bench.lib.advice_methods import (
    METHODS,
    Machine,
    Result,
    advised,
    doubling,
    published,
    result,
    simulated,
)
from bench.lib.pairs import figure, line, write_json
from bench.lib.prediction_laws import STRONG, WEAK
from bench.lib.prediction_series import LOADING, PUBLIC, TRAINING
from scalesweep.planning.plan_text import aligned

OF_A_KIND = 1
BUDGETS = (0.25, 0.5, 1.0)
# Budgets by which advice is asked for the width of a grid, over the cost of the single one.
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.5, 2.0, 3.0)
AIM = 0.5
ADVICE = "advice"
# Below this many counts there is nothing to choose.
LEAST_COUNTS = 6


def machines(of_a_kind: int) -> dict[str, list[Machine]]:
    """What is measured, by kind: simulated weak and strong scaling, and what was published."""
    kinds = {"simulated, weak": WEAK, "simulated, strong": STRONG}
    by_name = {}
    for name, kinds_of in kinds.items():
        count = of_a_kind * (1 if name.endswith("weak") else len(WEAK) // len(STRONG))
        by_name[name] = [simulated(kind, seed) for kind in kinds_of for seed in range(count)]
    by_name["published"] = [
        published(public)
        for public in PUBLIC
        if public.program in (TRAINING, LOADING) and len(public.ranks) >= LEAST_COUNTS
    ]
    return by_name


def measure(machine: Machine) -> dict[str, dict[str, Result | None]]:
    """Results by budget and method, and what advice pays for the width of a doubling grid."""
    whole = machine.grid_price()
    results: dict[str, dict[str, Result | None]] = {
        f"{share:g}": {name: result(way(machine, share * whole)) for name, way in METHODS.items()}
        for share in BUDGETS
    }
    for repeats in (1, 3):
        grid = result(doubling(machine, repeats * whole, repeats))
        cheaper = None
        for share in SHARES:
            if share > repeats or grid is None or cheaper is not None:
                break
            known = results.get(f"{share:g}", {}).get(ADVICE)
            outcome = known or result(advised(machine, share * whole))
            results.setdefault(f"{share:g}", {})[ADVICE] = outcome
            if outcome is not None and outcome.width <= grid.width:
                cheaper = outcome
        results[f"grid of {repeats}"] = {"grid": grid, ADVICE: cheaper}
    return results


def price_of_the_width(
    results: Sequence[Mapping[str, Mapping[str, Result | None]]], repeats: int
) -> list[float]:
    """What advice paid over what the grid did, for an interval as narrow; 1 where it never was."""
    pairs = [ways[f"grid of {repeats}"] for ways in results]
    return [
        1.0 if (ours := pair[ADVICE]) is None else ours.price / grid.price
        for pair in pairs
        if (grid := pair["grid"]) is not None
    ]


def rows_of(
    results: Sequence[Mapping[str, Mapping[str, Result | None]]],
) -> list[tuple[str, ...]]:
    """A row for each budget and method: medians over the series that the method can predict."""
    rows: list[tuple[str, ...]] = [("budget", "way", "predicted", "width", "error", "in 95 %")]
    for share in BUDGETS:
        for name in METHODS:
            there = [r for ways in results if (r := ways[f"{share:g}"].get(name)) is not None]
            if not there:
                rows.append((f"{share:g}", name, f"0 of {len(results)}", "", "", ""))
                continue
            width = float(np.median([result.width for result in there]))
            error = float(np.median([result.error for result in there]))
            held = float(np.mean([result.held for result in there]))
            rows.append((f"{share:g}", name, f"{len(there)} of {len(results)}", f"{width:.3f}",
                         f"{error:.1%}", f"{held:.0%}"))  # fmt: skip
    return rows


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=OF_A_KIND, help="simulated ones of a kind")
    parser.add_argument("--most", type=int, help="series of each group that are measured")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    figures, kept = [], {}
    groups = {name: group[: args.most] for name, group in machines(args.series).items()}
    workers = min(2, os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, get_context("forkserver")) as pool:
        for name, group in groups.items():
            results = list(pool.map(measure, group))
            kept[name] = {
                machine.name: {
                    budget: {way: r and asdict(r) for way, r in ways.items()}
                    for budget, ways in outcome.items()
                }
                for machine, outcome in zip(group, results, strict=True)
            }
            print(f"\n{name}: {len(group)} series")
            print("\n".join(aligned(rows_of(results), left={0, 1})), flush=True)
            for repeats, bound in ((1, None), (3, AIM)):
                paid = price_of_the_width(results, repeats)
                runs = "1 run" if repeats == 1 else f"{repeats} runs"
                head = f"{name}: node-hours for the width of a doubling grid of {runs}"
                figures.append(figure(f"{head}: median", float(np.median(paid)), "", bound))
                half = float(np.mean(np.array(paid) <= AIM))
                figures.append(figure(f"{head}: at most half, of series", half, ""))
            figures += _against(name, results)
    print()
    for row in figures:
        print(line(row))
    write_json({"results": kept, "figures": figures}, args.json)
    return 0


def _against(
    name: str, results: Sequence[Mapping[str, Mapping[str, Result | None]]]
) -> list[dict[str, object]]:
    """Width and error of advice over those of each other way, with half of the grid's cost."""
    figures: list[dict[str, object]] = []
    for other in METHODS:
        if other == ADVICE:
            continue
        pairs = [
            (ours, theirs)
            for ways in results
            if (ours := ways["0.5"].get(ADVICE)) and (theirs := ways["0.5"].get(other))
        ]
        if not pairs:
            continue
        widths = float(np.median([ours.width / theirs.width for ours, theirs in pairs]))
        bound = None if other == "random" else 1.0
        figures.append(figure(f"{name}: width / {other}, half its cost", widths, "", bound))
        error = float(np.median([ours.error for ours, _ in pairs]))
        error /= float(np.median([theirs.error for _, theirs in pairs]))
        figures.append(figure(f"{name}: error / {other}, half its cost", error, ""))
    return figures


if __name__ == "__main__":
    sys.exit(main())
