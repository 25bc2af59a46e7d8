"""Sentences of a campaign of ceilings, recomputed from the seconds of each repeat."""

import re

import numpy as np

from scalesweep.aspects.probes.findings import machine_ceilings
from tests.fakes.probes import note, study_of
from tests.recompute.arithmetic import mean
from tests.recompute.sentences import rounds_to

SIZES, WORK = (64, 128, 256), (2 * 64.0**3, 2 * 128.0**3, 2 * 256.0**3)
RUNS, REPEATS = 6, 5


def test_a_ceiling_is_that_of_the_best_run_and_names_the_disturbed() -> None:
    draw = np.random.default_rng(28)
    # FLOP/s of each run, size, repeat and rank; the third run is disturbed.
    speeds = 1e11 * np.array([0.6, 1.0, 0.95])[:, None, None]
    speeds = speeds * (1 - np.abs(0.01 * draw.standard_normal((RUNS, len(SIZES), REPEATS, 2))))
    speeds[2] *= 0.7
    seconds = np.array(WORK)[:, None, None] / speeds
    # Work of all ranks over the time of the slowest one; by run, size and repeat.
    rates = np.array(WORK)[:, None] / seconds.max(axis=-1)
    best = rates.max(axis=(1, 2))
    at = rates.max(axis=2).argmax(axis=1)
    medians = np.median(rates, axis=2)[np.arange(RUNS), at]

    sweeps = [(note(SIZES, WORK), each) for each in seconds]
    metrics = {"speed": ("FLOP/s", "higher"), "speed_median": ("FLOP/s", "higher")}
    (finding,) = machine_ceilings(
        study_of([({}, sweeps)], metrics, {"speed": [best], "speed_median": [medians]})
    )
    ordered = sorted(best[best > 0.9 * best.max()], reverse=True)
    assert len(ordered) == RUNS - 1
    _, low, high = mean(ordered)
    # P(C - X1 > c (X1 - X4)) = (1 + c)^-3 is 1.25 %.
    above = (0.0125 ** (-1 / 3) - 1) * (ordered[0] - ordered[3])
    ends = min(low, ordered[0]), max(high, ordered[0] + above)
    match = re.fullmatch(
        r"The ceiling is ([\d.]+) \[([\d.]+), ([\d.]+)\] GFLOP/s \(size 128\); the median repeat "
        r"reaches ([\d.]+) % of it; disturbed, below 90.0 % of the best: .*\.",
        finding.text,
    )
    assert match and finding.level == "confirmed", finding.text
    share = 100 * medians.mean() / best.max()
    for shown, number in zip(match.groups(), (best.max() / 1e9, *np.array(ends) / 1e9, share),
                             strict=True):  # fmt: skip
        assert rounds_to(float(number), shown), (finding.text, shown, number)
