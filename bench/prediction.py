"""How well unmeasured rank counts are predicted: fit on the smaller half, score on the larger.

Public series (``scalesweep.analysis.prediction.public_series``) and twelve kinds of simulated laws
(``bench.lib.prediction_laws``), without and with a change of regime; next to ours the last value,
a + b log2 p, Ernest, USL, and the hypothesis search of Extra-P (``bench.lib.prediction_rivals``).
Errors are of the cost (time at equal work), relative to what was measured. Series of which the
smaller half has too few points are refused, and are left out for all; how many is printed.

    python -m bench.prediction [--series N] [--json FILE]
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.lib.pairs import figure, line, write_json
from bench.lib.prediction_laws import STRONG, WEAK, simulate
from bench.lib.prediction_rivals import RIVALS, Guess
from scalesweep.analysis.prediction.forecast import predict
from scalesweep.analysis.prediction.public_series import LOADING, TENSORFLOW, TRAINING, by_study
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.types import Floats
from scalesweep.planning.plan_text import aligned

SEED = 20
OF_A_KIND = 40
OURS = "scalesweep"
Method = Callable[[Series, Floats, float], Guess]


class Score(NamedTuple):
    """Of one method over many held-out rows; widths and scores over what was measured."""

    rows: int
    median: float
    worst: float
    covered_50: float
    covered_90: float
    covered_95: float
    width_90: float
    interval_90: float


def ours(series: Series, targets: Floats, level: float) -> Guess:
    """What the report would print."""
    found = predict(series, targets)
    return Guess(found.cost, *found.interval(level))


METHODS: Mapping[str, Method] = {OURS: ours, **RIVALS}


def score(method: Method, many: Iterable[Series]) -> Score:
    """Fit the smaller half of every series (the odd point too), score every larger count."""
    errors, within, widths, intervals = [], {0.5: [], 0.9: [], 0.95: []}, [], []
    for series in many:
        half = (len(series.ranks) + 1) // 2
        known, targets, measured = series.first(half), series.ranks[half:], series.cost[half:]
        for level, inside in within.items():
            guess = method(known, targets, level)
            inside.append((guess.low <= measured) & (measured <= guess.high))
            if level == 0.9:
                errors.append(np.abs(guess.cost / measured - 1))
                width = (guess.high - guess.low) / measured
                outside = np.maximum(guess.low - measured, 0) + np.maximum(measured - guess.high, 0)
                widths.append(width)
                intervals.append(width + 2 / (1 - level) * outside / measured)
    all_errors = np.concatenate(errors)
    shares = [float(np.concatenate(inside).mean()) for inside in within.values()]
    return Score(
        len(all_errors), float(np.median(all_errors)), float(all_errors.max()), *shares,
        float(np.concatenate(widths).mean()), float(np.concatenate(intervals).mean()),
    )  # fmt: skip


def sets_of_series(of_a_kind: int) -> dict[str, list[Series]]:
    """Name -> series: the public ones by study, the simulated ones by scaling and change."""
    found = {
        study: [one.series() for one in series] for study, series in by_study().items()
    }
    random = np.random.default_rng(SEED)
    for scaling, kinds in (("weak", WEAK), ("strong", STRONG)):
        for change in (False, True):
            name = f"simulated, {scaling}{', change of regime' if change else ''}"
            drawn = [
                simulate(kind, random, change)
                for kind in kinds
                for _ in range(of_a_kind * (len(WEAK) // len(kinds) if scaling == "strong" else 1))
            ]
            found[name] = [make_series(one.ranks, one.cost, scaling) for one in drawn]
    return found


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=OF_A_KIND, help="simulated ones of a kind")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    scores: dict[str, dict[str, Score]] = {}
    rows: list[tuple[str, ...]] = []
    for name, many in sets_of_series(args.series).items():
        usable = [one for one in many if not refusal(one.first((len(one.ranks) + 1) // 2))]
        scores[name] = {method: score(call, usable) for method, call in METHODS.items()}
        refused = f", {len(many) - len(usable)} refused" if len(usable) < len(many) else ""
        print(f"\n{name}: {len(usable)} series, {scores[name][OURS].rows} rows{refused}")
        rows = [("", "median", "worst", "50 %", "90 %", "95 %", "width 90 %", "score 90 %")]
        rows += [
            (method, *(f"{value:.1%}" for value in one[1:6]), f"{one.width_90:.3f}",
             f"{one.interval_90:.3f}")
            for method, one in scores[name].items()
        ]  # fmt: skip
        print("\n".join(aligned(rows, left={0})))
    one = by_study()[TRAINING][2].series()
    began = time.perf_counter()
    for _ in range(20):
        predict(one, [2048.0])
    figures = _figures(scores, (time.perf_counter() - began) / 20)
    print()
    for row in figures:
        print(line(row))
    write_json({"scores": _plain(scores), "figures": figures}, args.json)
    return 0


def _figures(scores: Mapping[str, Mapping[str, Score]], seconds: float) -> list[dict[str, object]]:
    training = scores[TRAINING]
    found = [
        figure("CosmoFlow training: median error", 100 * training[OURS].median, "%", 2.2),
        figure("CosmoFlow training: rows in 90 % intervals, least",
               100 * training[OURS].covered_90, "%", 85, "higher"),
        figure("CosmoFlow training: rows in 90 % intervals, most",
               100 * training[OURS].covered_90, "%", 97),
        figure("CosmoFlow training: interval score / best of the others",
               training[OURS].interval_90
               / min(one.interval_90 for name, one in training.items() if name != OURS), "", 1),
        figure("one prediction", seconds, "s", 0.2),
    ]  # fmt: skip
    for study in (LOADING, TENSORFLOW):
        found.append(figure(f"{study}: median error", 100 * scores[study][OURS].median, "%"))
    for name, those in scores.items():
        if name.startswith("simulated"):
            share = 100 * those[OURS].covered_95
            change = name.endswith("regime")
            found.append(
                figure(f"{name}: in 95 %, least", share, "%", 85 if change else 92, "higher")
            )
            if not change:
                found.append(figure(f"{name}: in 95 %, most", share, "%", 98))
    return found


def _plain(scores: Mapping[str, Mapping[str, Score]]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {method: one._asdict() for method, one in those.items()}
        for name, those in scores.items()
    }


if __name__ == "__main__":
    sys.exit(main())
