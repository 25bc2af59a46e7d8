"""False verdicts and found steps of the history and of A/B; what a long history costs.

Series without any change over a year of evenings, each judged on every one of them: how many get a
false verdict on any. Steps planted after 24 sessions: how many are found. Pairs of commits. Then
1,000 sessions of 100 points on disk.

    python -m bench.history [--series N] [--years N] [--sessions N]
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.lib.pairs import figure, run
from scalesweep.config.campaign_keys import HistorySettings
from scalesweep.history.series import read_history
from scalesweep.history.store import append, load
from scalesweep.judge.change import CHANGED, paired
from tests.fakes.evenings import AFTER, MARGIN, NOISE, OTHERS, alarmed, steps_found
from tests.fakes.history import FakeSession, make_session

EVENINGS, SEED = 250, 23
FOUND = 0.85


def ab(n: int, pairs: int, step: float, drift: float = 0.0) -> float:
    """Share of points at which two commits, measured alternately, are called different: 2 % noise,
    a machine that becomes slower by ``drift`` from run to run."""
    rng = np.random.default_rng(5)
    order = np.array(([0, 1, 1, 0] * pairs)[: 2 * pairs])
    changed = 0
    for _ in range(n):
        logs = rng.normal(0, 0.02, 2 * pairs) + drift * np.arange(2 * pairs) + step * order
        ratios = logs[order == 1] - logs[order == 0]
        changed += paired(ratios, "lower", MARGIN).verdict in CHANGED
    return changed / n


def cost(sessions: int) -> dict[str, float]:
    """Seconds to add a session to a history, to read it and to judge it."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fakes = [
            FakeSession(day, {f"ranks {k}": list(rng.normal(1, 0.02, 5)) for k in range(1, 101)})
            for day in range(sessions)
        ]
        append(folder, pd.concat(map(make_session, fakes[:-1])))
        last = make_session(fakes[-1])
        times = [time.perf_counter()]
        append(folder, last)
        times.append(time.perf_counter())
        load(folder)
        times.append(time.perf_counter())
        read_history(HistorySettings(folder=folder))
        times.append(time.perf_counter())
    return dict(zip(("append", "read", "read and judge"), np.diff(times).tolist(), strict=True))


def figures_of(series: int, years: int) -> list[dict[str, Any]]:
    """The rates."""
    figures = []
    for noise, (draw, bound) in NOISE.items():
        share = alarmed(draw, EVENINGS, years, SEED)
        figures.append(
            figure(f"series that alarm in a year of evenings, {noise}", share, "", bound)
        )
    for noise, other in OTHERS.items():
        share = alarmed(other, EVENINGS, years, SEED)
        figures.append(figure(f"series that alarm in a year of evenings, {noise}", share, ""))
    for step in (0.03, 0.05, 0.1):
        for after in (2, 3, 4, AFTER):
            wanted = FOUND if (step, after) == (0.05, AFTER) else None
            name = f"steps of {step:.0%} found within {after} sessions"
            figures.append(
                figure(name, steps_found(step, series, SEED, after), "", wanted, "higher")
            )
    name = f"steps of 5 % found within {AFTER} sessions, sessions scatter by 2 %"
    figures.append(figure(name, steps_found(0.05, series, SEED, between=0.02), ""))
    for drift in (0.0, 0.01):
        share = ab(2000, 5, 0.0, drift)
        figures.append(figure(f"A/B, 5 pairs, drift {drift:.0%} a run: false", share, "", 0.05))
    for pairs in (5, 10):
        share = ab(2000, pairs, 0.05)
        figures.append(figure(f"A/B, {pairs} pairs: steps of 5 % found", share, ""))
    return figures


def measure(series: int = 400, years: int = 200, sessions: int = 1000) -> Iterator[dict[str, Any]]:
    """Of so many series with a step, series of a year of evenings, sessions on disk."""
    yield from figures_of(series, years)
    for what, seconds in cost(sessions).items():
        yield figure(f"{what}: a history of {sessions:,} sessions of 100 points", seconds, "s")


if __name__ == "__main__":
    run(measure)
