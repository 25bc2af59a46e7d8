"""How well unmeasured rank counts are predicted: fit on the smaller half, score on the larger.

Public series (``scalesweep.analysis.prediction.public_series``) and twelve kinds of simulated laws
(``bench.lib.prediction_laws``), without and with a change of regime; next to ours the last value,
a + b log2 p, Ernest, USL, and the hypothesis search of Extra-P (``bench.lib.prediction_rivals``).
Errors are of the cost (time at equal work), relative to what was measured. The training series are
scored once more from every origin, because their larger halves are few rows. Series of 1 to 8 GPUs
(``bench.lib.prediction_unseen``), on which nothing was calibrated, are forecast from the first
three. Simulated series whose
parts are known (``bench.lib.prediction_parts``) are forecast without and with the sums by parts.
Series of which the smaller half has too few points are refused, and are left out for all; how many
is printed.

    python -m bench.prediction [--series N] [--json FILE]
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.lib.pairs import figure, line, write_json
from bench.lib.prediction_laws import STRONG, WEAK, simulate
from bench.lib.prediction_parts import KINDS as PARTS
from bench.lib.prediction_parts import WRONG, with_and_without
from bench.lib.prediction_rivals import RIVALS, Guess
from bench.lib.prediction_unseen import unseen
from scalesweep.analysis.prediction.forecast import predict
from scalesweep.analysis.prediction.public_series import LOADING, TENSORFLOW, TRAINING, by_study
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.types import Floats
from scalesweep.planning.plan_text import aligned

SEED = 20
OF_A_KIND = 40
OURS = "scalesweep"
ROLLING = f"{TRAINING}, every origin"
UNSEEN = "TensorFlow 2017 on one machine, not calibrated on"
Method = Callable[[Series, Floats, float], Guess]
Cut = Callable[[Series], Sequence[int]]


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


def halves(series: Series) -> Sequence[int]:
    """How many of the smallest counts are fitted: half of them, the odd one too."""
    half = (len(series.ranks) + 1) // 2
    return [] if refusal(series.first(half)) else [half]


def origins(series: Series) -> Sequence[int]:
    """The same for rolling forecasts: every number of counts that is not refused."""
    counts = range(1, len(series.ranks))
    return [count for count in counts if not refusal(series.first(count))]


def score(method: Method, many: Iterable[Series], cut: Cut) -> Score:
    """Fit as many of the smallest counts of each series as ``cut`` says, score every larger one."""
    errors: list[Floats] = []
    within: dict[float, list[NDArray[np.bool_]]] = {0.5: [], 0.9: [], 0.95: []}
    widths: list[Floats] = []
    intervals: list[Floats] = []
    for series, count in ((one, count) for one in many for count in cut(one)):
        known, targets, measured = series.first(count), series.ranks[count:], series.cost[count:]
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
    half, most, nearly_all = (float(np.concatenate(one).mean()) for one in within.values())
    return Score(
        len(all_errors), float(np.median(all_errors)), float(all_errors.max()),
        half, most, nearly_all,
        float(np.concatenate(widths).mean()), float(np.concatenate(intervals).mean()),
    )  # fmt: skip


def sets_of_series(of_a_kind: int) -> dict[str, tuple[list[Series], Cut]]:
    """Name -> series and how they are cut: the public ones by study, the simulated ones by scaling
    and change."""
    found: dict[str, tuple[list[Series], Cut]] = {}
    for study, those in by_study().items():
        found[study] = ([one.series() for one in those], halves)
    found[ROLLING] = (found[TRAINING][0], origins)
    found[UNSEEN] = (unseen(), origins)
    random = np.random.default_rng(SEED)
    for scaling, kinds in (("weak", WEAK), ("strong", STRONG)):
        for change in (False, True):
            name = f"simulated, {scaling}{', change of regime' if change else ''}"
            drawn = [
                simulate(kind, random, change)
                for kind in kinds
                for _ in range(of_a_kind * (len(WEAK) // len(kinds) if scaling == "strong" else 1))
            ]
            series = [make_series(one.ranks, one.cost, scaling) for one in drawn]
            found[name] = (series, halves)
    return found


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=OF_A_KIND, help="simulated ones of a kind")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    scores: dict[str, dict[str, Score]] = {}
    for name, (many, cut) in sets_of_series(args.series).items():
        scores[name] = {method: score(call, many, cut) for method, call in METHODS.items()}
        usable = sum(bool(cut(one)) for one in many)
        refused = f", {len(many) - usable} refused" if usable < len(many) else ""
        print(f"\n{name}: {usable} series, {scores[name][OURS].rows} rows{refused}")
        rows: list[tuple[str, ...]] = [
            ("", "median", "worst", "50 %", "90 %", "95 %", "width 90 %", "score 90 %")
        ]
        rows += [
            (method, *(f"{value:.1%}" for value in one[1:6]), f"{one.width_90:.3f}",
             f"{one.interval_90:.3f}")
            for method, one in scores[name].items()
        ]  # fmt: skip
        print("\n".join(aligned(rows, left={0})))
    parts = {kind: with_and_without(kind, args.series, SEED) for kind in PARTS}
    print("\nParts of a step known (simulated, weak): without and with the sums by parts")
    table: list[tuple[str, ...]] = [("", "mean error", "in 90 %", "score 90 %")]
    for kind, pair in parts.items():
        errors, covered, interval = zip(*pair, strict=True)
        table.append((kind, *(f"{a:.1%} {b:.1%}" for a, b in (errors, covered)),
                      "{:.3f} {:.3f}".format(*interval)))  # fmt: skip
    print("\n".join(aligned(table, left={0})))
    one = by_study()[TRAINING][2].series()
    others = [replace(one, cost=one.cost * (1 + 1e-6 * n)) for n in range(20)]  # no fit is kept
    began = time.perf_counter()
    for other in others:
        predict(other, [2048.0])
    figures = _figures(scores, (time.perf_counter() - began) / 20)
    helped = [
        own.mean / without.mean for kind, (without, own) in parts.items() if kind not in WRONG
    ]
    figures.append(figure("sums by parts: error over that without", float(np.mean(helped)), "", 1))
    print()
    for row in figures:
        print(line(row))
    write_json({"scores": _plain(scores), "figures": figures}, args.json)
    return 0


def _figures(scores: Mapping[str, Mapping[str, Score]], seconds: float) -> list[dict[str, object]]:
    training, rolling = scores[TRAINING], scores[ROLLING]
    rivals = min(one.interval_90 for name, one in training.items() if name != OURS)
    inside = 100 * rolling[OURS].covered_90
    found = [
        figure(f"{TRAINING}: median error", 100 * training[OURS].median, "%", 2.2),
        figure(f"{TRAINING}: score of 90 % intervals / the best other",
               training[OURS].interval_90 / rivals, "", 1),
        figure(f"{ROLLING}: in 90 %, least", inside, "%", 85, "higher"),
        figure(f"{ROLLING}: in 90 %, most", inside, "%", 97),
        figure("one prediction", seconds, "s", 0.2),
    ]  # fmt: skip
    for study in (LOADING, TENSORFLOW, UNSEEN):
        found.append(figure(f"{study}: median error", 100 * scores[study][OURS].median, "%"))
    for name, those in scores.items():
        if name.startswith("simulated"):
            share = 100 * those[OURS].covered_95
            least = 85 if name.endswith("regime") else 92
            found.append(figure(f"{name}: in 95 %, least", share, "%", least, "higher"))
            if least == 92:
                found.append(figure(f"{name}: in 95 %, most", share, "%", 98))
    return found


def _plain(scores: Mapping[str, Mapping[str, Score]]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {method: one._asdict() for method, one in those.items()}
        for name, those in scores.items()
    }


if __name__ == "__main__":
    sys.exit(main())
