"""False first lines of the compare page: how many comparisons without any change have one.

Both sides of each comparison are equal: a first line is false if it names a point that is faster or
slower. A change of 5 % at one point is planted too, for the power.

    python -m bench.comparisons [--comparisons N]
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from bench.lib.pairs import figure, run
from scalesweep.analysis.types import Floats
from scalesweep.compare.page import compare_sides, sentences
from scalesweep.judge.change import CHANGED, REGRESSION
from tests.fakes.sides import RATE, FakePoint, FakeSide, make_side

Draw = Callable[[np.random.Generator, int], Floats]
# Logarithms of repeats of a point.
NOISE: Mapping[str, Draw] = {
    "normal": lambda rng, n: 0.02 * rng.standard_normal(n),
    "heavy-tailed (t, 3 degrees)": lambda rng, n: 0.02 * rng.standard_t(3, n),
    "skewed (exponential)": lambda rng, n: -0.02 * rng.exponential(size=n),
    "one repeat in ten 20 % slower": lambda rng, n: (
        0.01 * rng.standard_normal(n) - 0.2 * (rng.random(n) < 0.1)
    ),
    "other noise at each point": lambda rng, n: 0.01 * rng.lognormal(0, 1) * rng.standard_normal(n),
}
LAYOUTS = ((4, 3), (12, 5), (40, 3), (12, 24))  # points, repeats


def comparison(
    rng: np.random.Generator, draw: Draw, points: int, repeats: int, step: float = 0.0
) -> tuple[str, bool]:
    """The tag of the first line; and whether any point's own interval excludes 1."""
    sides = []
    for role in ("base", "new"):
        made = []
        for ranks in range(points):
            logs = draw(rng, repeats) + (step if role == "new" and not ranks else 0.0)
            first = np.exp(draw(rng, repeats))
            metrics = {(RATE, "later"): (100 * np.exp(logs)).tolist()}
            made.append(FakePoint({"ranks": ranks}, {**metrics, (RATE, "init"): first.tolist()}))
        sides.append(make_side(FakeSide(role, made)))
    base, new = sides
    rows = compare_sides(base, new).rows
    shown = rows[rows["main"]]
    own = bool(shown["verdict"].isin(CHANGED).any())
    return sentences(shown)[0]["tag"], own


def measure(comparisons: int = 300) -> Iterator[dict[str, Any]]:
    """Of so many comparisons of each layout and noise."""
    for noise, draw in NOISE.items():
        rng = np.random.default_rng(17)
        outcomes = (comparison(rng, draw, *of) for of in LAYOUTS for _ in range(comparisons))
        made = [(tag != "open", alone) for tag, alone in outcomes]
        false, own = (100 * np.mean(each) for each in zip(*made, strict=True))
        yield figure(f"{noise}: a false first line", false, "%", 5)
        yield figure(f"{noise}: a point whose own interval excludes 1", own, "%")
    rng = np.random.default_rng(19)
    tags = [comparison(rng, NOISE["normal"], 12, 5, -0.05)[0] for _ in range(comparisons)]
    share = 100 * tags.count(REGRESSION) / len(tags)
    yield figure("5 % at one of 12 points, 2 % noise, 5 repeats, is said first", share, "%")


if __name__ == "__main__":
    run(measure)
