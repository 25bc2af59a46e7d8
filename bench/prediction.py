"""How well unmeasured rank counts are predicted: fit on the smaller half, score on the larger.

Published series (``bench.lib.prediction_series``), each by a calibration without any series of its
cluster (``bench.lib.prediction_left_out``), next to the last value, a + b log2 p and the hypothesis
search of Extra-P (``bench.lib.prediction_rivals``); a table for each of what may be known of the
machine, with what is refused, and one of the forecasts from every number of counts. Then twelve
kinds of simulated laws (``bench.lib.prediction_laws``), without and with a change of regime, next
to Ernest and USL too, and simulated series whose parts are known (``bench.lib.prediction_parts``),
without and with the sums by parts. Errors are of the cost (time at equal work), relative to what
was measured. Series of which the smaller half has too few points are left out for all.

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
from bench.lib.prediction_calibration import OF_A_KIND as CALIBRATED_ON
from bench.lib.prediction_laws import STRONG, WEAK, simulate
from bench.lib.prediction_left_out import OTHERS, SIMILAR, WAYS, left_out, scores
from bench.lib.prediction_left_out import Score as LeftOut
from bench.lib.prediction_parts import KINDS as PARTS
from bench.lib.prediction_parts import WRONG, with_and_without
from bench.lib.prediction_rivals import RIVALS, Guess
from bench.lib.prediction_series import PUBLIC
from scalesweep.analysis.prediction.forecast import predict
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.types import Floats
from scalesweep.planning.plan_text import aligned

SEED = 20
OF_A_KIND = 40
OURS = "scalesweep"
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
    prediction = predict(series, targets)
    return Guess(prediction.cost, *prediction.interval(level))


METHODS: Mapping[str, Method] = {OURS: ours, **RIVALS}


def halves(series: Series) -> Sequence[int]:
    """How many of the smallest counts are fitted: half of them, the odd one too."""
    half = (len(series.ranks) + 1) // 2
    return [] if refusal(series.first(half)) else [half]


def score(method: Method, many: Iterable[Series], cut: Cut) -> Score:
    """Fit as many of the smallest counts of each series as ``cut`` says, score every larger one."""
    errors: list[Floats] = []
    within: dict[float, list[NDArray[np.bool_]]] = {0.5: [], 0.9: [], 0.95: []}
    widths: list[Floats] = []
    intervals: list[Floats] = []
    for series, count in ((each, count) for each in many for count in cut(each)):
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
    half, most, nearly_all = (float(np.concatenate(hits).mean()) for hits in within.values())
    return Score(
        len(all_errors), float(np.median(all_errors)), float(all_errors.max()),
        half, most, nearly_all,
        float(np.concatenate(widths).mean()), float(np.concatenate(intervals).mean()),
    )  # fmt: skip


def sets_of_series(of_a_kind: int) -> dict[str, tuple[list[Series], Cut]]:
    """Name -> simulated series, by scaling and change, and how they are cut."""
    sets: dict[str, tuple[list[Series], Cut]] = {}
    random = np.random.default_rng(SEED)
    for scaling, kinds in (("weak", WEAK), ("strong", STRONG)):
        for change in (False, True):
            name = f"simulated, {scaling}{', change of regime' if change else ''}"
            drawn = [
                simulate(kind, random, change)
                for kind in kinds
                for _ in range(of_a_kind * (len(WEAK) // len(kinds) if scaling == "strong" else 1))
            ]
            series = [make_series(series.ranks, series.cost, scaling) for series in drawn]
            sets[name] = (series, halves)
    return sets


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=OF_A_KIND, help="simulated ones of a kind")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    published = {way: scores(left_out(way, CALIBRATED_ON)) for way in WAYS}
    for way, groups in published.items():
        print(f"\npublished series, calibrated without their cluster, {way}")
        print("\n".join(aligned([_HEAD, *map(_cells, groups.items())], left={0})))
    print(f"\npublished series, from every number of counts, {SIMILAR}")
    each = scores(left_out(SIMILAR, CALIBRATED_ON, every=True))
    print("\n".join(aligned([_HEAD, *map(_cells, each.items())], left={0})))
    drawn: dict[str, dict[str, Score]] = {}
    for name, (many, cut) in sets_of_series(args.series).items():
        drawn[name] = {method: score(call, many, cut) for method, call in METHODS.items()}
        usable = sum(bool(cut(series)) for series in many)
        refused = f", {len(many) - usable} refused" if usable < len(many) else ""
        print(f"\n{name}: {usable} series, {drawn[name][OURS].rows} rows{refused}")
        rows: list[tuple[str, ...]] = [
            ("", "median", "worst", "50 %", "90 %", "95 %", "width 90 %", "score 90 %")
        ]
        rows += [
            (method, *(f"{value:.1%}" for value in score[1:6]), f"{score.width_90:.3f}",
             f"{score.interval_90:.3f}")
            for method, score in drawn[name].items()
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
    series = next(series for series in PUBLIC if series.name == "Cori KNL").series()
    others = [
        replace(series, cost=series.cost * (1 + 1e-6 * n)) for n in range(20)
    ]  # no fit is kept
    began = time.perf_counter()
    for other in others:
        predict(other, [2048.0])
    figures = _figures(published, drawn, (time.perf_counter() - began) / 20)
    helped = [
        own.mean / without.mean for kind, (without, own) in parts.items() if kind not in WRONG
    ]
    figures.append(figure("sums by parts: error over that without", float(np.mean(helped)), "", 1))
    print()
    for row in figures:
        print(line(row))
    plain = {way: {n: score._asdict() for n, score in of.items()} for way, of in published.items()}
    made = {name: {n: score._asdict() for n, score in of.items()} for name, of in drawn.items()}
    write_json({"published": plain, "simulated": made, "figures": figures}, args.json)
    return 0


_HEAD = ("", "rows", "refused", "median", *OTHERS, "in 90 %", "in 95 %")


def _cells(named: tuple[str, LeftOut]) -> tuple[str, ...]:
    name, score = named
    shares = (*score.errors, score.in_90, score.in_95)
    texts = ("-" if np.isnan(share) else f"{share:.1%}" for share in shares)
    return name, str(score.rows), f"{score.refused:.0%}", *texts


def _figures(
    published: Mapping[str, Mapping[str, LeftOut]],
    drawn: Mapping[str, Mapping[str, Score]],
    seconds: float,
) -> list[dict[str, object]]:
    """Bounds: coverage of what is not refused, what is refused, and errors against the others'."""
    rows = [figure("one prediction", seconds, "s", 0.2)]
    for way, groups in published.items():
        for name in BOUNDED if way == SIMILAR else ("all",):
            score = groups[name]
            for level, share, least, most in (
                (90, score.in_90, 85, 95),
                (95, score.in_95, 90, 98),
            ):
                text = f"{way}, {name}: in {level} %"
                rows.append(figure(f"{text}, least", 100 * share, "%", least, "higher"))
                rows.append(figure(f"{text}, most", 100 * share, "%", most))
    similar = published[SIMILAR]
    rows.append(figure("refused among similar series", 100 * similar["all"].refused, "%", 35))
    for name in ("weak", "strong"):
        own, *others = similar[name].errors
        rows.append(figure(f"{name}: median error", 100 * own, "%", 100 * min(others)))
    rows.append(figure("strong: median error, today", 100 * similar["strong"].errors[0], "%", 8.8))
    for name, by_method in drawn.items():
        share = 100 * by_method[OURS].covered_95
        least = 85 if name.endswith("regime") else 90
        rows.append(figure(f"{name}: in 95 %, least", share, "%", least, "higher"))
    return rows


BOUNDED = (
    *("all", "weak", "strong", "from three counts", "from more", "across a node's border"),
    "within",
)


if __name__ == "__main__":
    sys.exit(main())
