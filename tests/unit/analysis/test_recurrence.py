"""Distances between events, and the part of a run in which they lie."""

import numpy as np
import pytest

from scalesweep.analysis.recurrence import Recurrence, recurrence_of

RUNS = 3


@pytest.mark.parametrize(
    ("places", "every", "part"),
    [
        (range(9, 60, 10), 10, None),
        ((24, 49), 25, None),
        ((19, 39, 59), 20, None),
        (range(0, 60, 2), 2, None),
        ((41, 44, 48, 51, 55, 58), None, (41, 58)),
        ((0, 20), None, None),  # and then 39 steps without
        ((9, 19, 29), 10, (9, 29)),
        ((30, 40, 50), 10, (30, 50)),
        ((4, 13, 29, 31, 44, 58), None, None),
        ((7,), None, None),
        ((), None, None),
    ],
)
def test_every_so_many_th_is_of_the_whole_run_or_of_a_part(
    places: tuple[int, ...], every: int | None, part: tuple[int, int] | None
) -> None:
    assert recurrence_of([np.array(places, int)] * RUNS, 60) == Recurrence(every, part)


def test_runs_that_begin_elsewhere_are_regular_too() -> None:
    runs = [np.arange(first, 60, 10) for first in (3, 6, 9)]
    assert recurrence_of(runs, 60) == Recurrence(10, None)


def test_a_hole_in_the_middle_is_no_regular_run() -> None:
    places = np.concatenate([np.arange(0, 100, 2), np.arange(900, 1000, 2)])
    assert recurrence_of([places] * RUNS, 1000) == Recurrence(None, None)


def test_events_at_random_have_no_distance_and_no_part() -> None:
    draw = np.random.default_rng(3)
    said = 0
    for _ in range(500):
        runs = [np.sort(draw.choice(60, 6, replace=False)) for _ in range(RUNS)]
        said += recurrence_of(runs, 60) != Recurrence(None, None)
    assert said <= 0.01 * 500
