"""How often the warm-up of an imported log of a training program is found wrong, or not at all.

For shapes of warm-up and noise and for numbers of lines: the share of runs that are left
unfinished, and the share of all that count with a mean more than 5 % off that of the lines behind
the true warm-up. Where the times never become steady, every run that counts is off. The rule was
tuned on seeds 1, 20261126 and 20261127; simulated, half a minute.

    python -m bench.log_warm_up [--runs N] [--seed N]
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from bench.lib.pairs import figure, run
from scalesweep.analysis.types import Floats
from scalesweep.compute.log_steps import slow_end, slowed_down, steady_from

LINES, SLOW = (8, 30, 300), (20.0, 3.0, 1.5)
OFF = 0.05
FRESH = 20261201
Draw = np.random.Generator
# Times of so many lines, and how many of them are warm-up; None: they never become steady.
Shape = Callable[[Draw, int], tuple[Floats, int | None]]


def _noise(draw: Draw, count: int, deviation: float = 0.02, memory: float = 0.0) -> Floats:
    """Times around 1, of which each remembers so much of the one before."""
    errors = draw.standard_normal(count)
    if memory:
        for place in range(1, count):
            errors[place] = memory * errors[place - 1] + (1 - memory**2) ** 0.5 * errors[place]
    return np.asarray(np.exp(deviation * errors))


def _compiled(times: Floats) -> tuple[Floats, int]:
    """The same with first lines that compile."""
    slow = min(len(SLOW), len(times) // 4)
    times[:slow] *= SLOW[:slow]
    return times, slow


def _after(change: Callable[[Draw, Floats], None], steady: bool = True) -> Shape:
    """Noise of 2 %, then a change; three first lines compile."""

    def shape(draw: Draw, count: int) -> tuple[Floats, int | None]:
        times = _noise(draw, count)
        change(draw, times)
        times, slow = _compiled(times)
        return times, slow if steady else None

    return shape


def _cache(share: float, by: float) -> Shape:
    """A first epoch that fills a cache: so much slower, for a share of all lines."""

    def shape(draw: Draw, count: int) -> tuple[Floats, int]:
        times, end = _noise(draw, count), int(share * count)
        times[:end] *= by
        times[0] *= 5
        return times, end

    return shape


def _late(times: Floats, begin: float, by: float) -> None:
    times[int(begin * len(times)) :] *= by


def _rising(times: Floats, by: float) -> None:
    times *= 1 + by * np.arange(len(times)) / len(times)


def _stalls(draw: Draw, times: Floats) -> None:
    times *= np.where(draw.random(len(times)) < 0.05, draw.uniform(2, 10, len(times)), 1.0)


def _checkpoints(draw: Draw, times: Floats) -> None:
    every = max(5, len(times) // 6)
    times[every::every] *= 6


def _recompiles(draw: Draw, times: Floats) -> None:
    times[len(times) // 2 :][:2] *= 20


def _two_lengths(draw: Draw, times: Floats) -> None:
    times *= np.where(draw.random(len(times)) < 0.5, 1.3, 1.0)


def _settling(draw: Draw, count: int) -> tuple[Floats, int | None]:
    times = _noise(draw, count)
    times *= 1 + 0.5 * np.exp(-3 * np.arange(count) / count)
    return times, None


SHAPES: Mapping[str, Shape] = {
    "compiles, noise of 2 %": _after(lambda draw, times: None),
    "compiles, noise of 10 %": lambda d, n: _compiled(_noise(d, n, 0.1)),
    "heavy tails (t with 2 degrees), 5 %": lambda d, n: _compiled(
        np.exp(0.05 * d.standard_t(2, n))
    ),
    "memory of 0.7, 5 %": lambda d, n: _compiled(_noise(d, n, 0.05, 0.7)),
    "memory of 0.95, 5 %": lambda d, n: _compiled(_noise(d, n, 0.05, 0.95)),
    "first third fills a cache, 30 % slower": _cache(1 / 3, 1.3),
    "first half fills a cache, 30 % slower": _cache(1 / 2, 1.3),
    "first 70 % fill a cache, 30 % slower": _cache(0.7, 1.3),
    "first third 8 % slower": _cache(1 / 3, 1.08),
    "one step in 20 stalls, 2 to 10 times": _after(_stalls),
    "a checkpoint six times in the run, 6 times": _after(_checkpoints),
    "two steps compile again in the middle": _after(_recompiles),
    "two lengths of step, 30 % apart": _after(_two_lengths),
    "settling until the end, 50 to 2 %": _settling,
    "rising by 10 %": _after(lambda draw, times: _rising(times, 0.1), steady=False),
    "rising by 20 %": _after(lambda draw, times: _rising(times, 0.2), steady=False),
    "twice as long from the middle on": _after(
        lambda draw, times: _late(times, 0.5, 2.0), steady=False
    ),
    "20 % slower after a third": _after(lambda draw, times: _late(times, 1 / 3, 1.2), steady=False),
    "50 % slower in the last fifth": _after(
        lambda draw, times: _late(times, 0.8, 1.5), steady=False
    ),
}


def outcome(shape: Shape, draw: Draw, count: int) -> tuple[bool, bool]:
    """Whether a run counts, and whether its mean is off."""
    times, warm = shape(draw, count)
    first, drifts = steady_from(times)
    if first is None or drifts or slowed_down(times, first) or slow_end(times, first) is not None:
        return False, False
    if warm is None:
        return True, True
    return True, abs(times[first:].mean() / times[warm:].mean() - 1) > OFF


def measure(runs: int = 400, seed: int = FRESH) -> Iterator[dict[str, Any]]:
    """Of so many runs of each shape and length."""
    for name, shape in SHAPES.items():
        for count in LINES:
            draw = np.random.default_rng([seed, count])
            counts, offs = np.transpose([outcome(shape, draw, count) for _ in range(runs)])
            words = f"{name}, {count} lines"
            yield figure(f"{words}: unfinished", 100 * (1 - counts.mean()), "%")
            yield figure(f"{words}: off", 100 * offs.mean(), "%")


if __name__ == "__main__":
    run(measure)
