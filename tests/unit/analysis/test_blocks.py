"""The error of means and ratios: against least squares, and where there is none."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from scalesweep.analysis.blocks import PRIOR, Errors, Layout, layouts
from scalesweep.analysis.types import Floats

# Four points in three blocks, whose residuals scatter alike.
LOGS = np.array(
    [[1.00, 1.21, 1.52], [2.02, 2.19, 2.48], [2.97, 3.23, 3.51], [4.03, 4.20, 4.50]]
)  # fmt: skip


def in_blocks(logs: Floats) -> Errors:
    table = np.exp(logs)
    return Errors(dict(enumerate(table)), [(range(len(table)), table)])


def test_shared_variance_is_that_of_least_squares_on_points_and_blocks() -> None:
    points, repeats = LOGS.shape
    rows, columns = np.indices(LOGS.shape)
    design = np.zeros((LOGS.size, points + repeats))
    design[np.arange(LOGS.size), rows.ravel()] = 1
    design[np.arange(LOGS.size), points + columns.ravel()] = 1
    fitted = design @ np.linalg.lstsq(design, LOGS.ravel(), rcond=None)[0]
    rest = LOGS.ravel() - fitted
    shared = float(rest @ rest) / (LOGS.size - (points + repeats - 1))
    scaled = (rest.reshape(LOGS.shape) ** 2).sum(axis=1) * points / (points - 1) / 2
    own = (PRIOR * shared + 2 * scaled) / (PRIOR + 2)
    error = in_blocks(LOGS).ratio(1, 0)
    assert error is not None and error.error == pytest.approx(math.sqrt((own[0] + own[1]) / 3))
    assert error.degrees == 6  # as many as all residuals have
    # Of a mean what blocks differ by counts too.
    alone = Errors(dict(enumerate(np.exp(LOGS))), shared=False).mean(2)
    mean = in_blocks(LOGS).mean(2)
    assert mean.error == pytest.approx(alone.error, rel=0.1) and 2 < mean.degrees < 6


def test_two_points_of_three_repeats_have_four_degrees_of_freedom() -> None:
    # Within blocks there would be two.
    error = in_blocks(LOGS[:2]).ratio(1, 0)
    spread = LOGS[:2].var(axis=1, ddof=1).sum()
    assert error is not None and error.degrees == 4
    assert error.error == pytest.approx(math.sqrt(spread / 3))


def test_a_point_that_lacks_a_run_is_compared_without_the_blocks() -> None:
    table = np.exp(LOGS + np.array([0.0, 5.0, -3.0]))
    table[2, 1] = math.nan
    errors = Errors(
        {place: own[np.isfinite(own)] for place, own in enumerate(table)}, [(range(4), table)]
    )
    whole, lacking = errors.ratio(1, 0), errors.ratio(2, 0)
    assert whole is not None and lacking is not None and lacking.error > 10 * whole.error


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0, 2.0], [1.0, 0.0, 2.0]])
def test_what_tells_no_scatter_has_no_error(values: list[float]) -> None:
    errors = Errors({"a": np.array(values), "b": np.array([1.0, 1.1]), "c": np.array([2.0, 2.1])})
    assert errors.mean("a") is None and errors.ratio("a", "b") is None
    assert errors.ratio("b", "c") is not None


def _layouts(order: Sequence[str]) -> list[Layout]:
    """Of runs of points (letters), whose repeats began in this order."""
    count = dict.fromkeys(order, 0)
    runs = []
    for began, point in enumerate(order):
        runs.append((point, count[point], float(began)))
        count[point] += 1
    # Runs come point by point, as in a plan.
    runs.sort(key=lambda run: run[:2])
    return layouts(*(list(column) for column in zip(*runs, strict=True)))


def test_blocks_are_seen_by_when_runs_began() -> None:
    (found,) = _layouts("abcdcbaddbca")
    assert found.points == list("abcd")
    assert found.runs.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    # Jobs of a cluster overtake each other a little.
    (found,) = _layouts("abcdcbdaadcb")
    assert found.points == list("abcd")
    assert not _layouts("aaabbbcccddd")  # one point after the other
    assert not _layouts("abcd")  # one repeat
    assert not layouts(["a", "b"] * 3, [0, 0, 1, 1, 2, 2], [math.nan] * 6)
    assert not layouts(["a", "b"] * 3, [0, 0, 1, 1, 2, 2], [0.0] * 6)


def test_what_was_added_or_run_again_later_is_no_part_of_the_blocks() -> None:
    first, later = _layouts("abcbcacabdeedde")
    assert (first.points, later.points) == (list("abc"), list("de"))
    # The second repeat of d failed, and was run again when all else was done.
    points, repeats = list("abcd" * 3), [0] * 4 + [1] * 4 + [2] * 4
    began = [float(place) if place != 7 else 99.0 for place in range(12)]
    (found,) = layouts(points, repeats, began)
    assert found.points == list("abc")
    # Points with more repeats are on their own.
    first, more = _layouts("abcdbcdacddc")
    assert (first.points, more.points) == (list("ab"), list("cd"))
