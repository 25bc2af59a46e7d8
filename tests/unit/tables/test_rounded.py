"""Numbers that are printed with few digits have wider intervals: all may be off to one side."""

import json
from typing import Any

import numpy as np
import pytest

from tests.fakes.rows import study_of

RATES = {1: (2850.0, 2860.0, 2840.0), 8: (22800.0, 22700.0, 22900.0)}
HALF = {1: 5.0, 8: 50.0}


def tables(rounded: bool) -> Any:
    """Weak scaling by a rate with three digits."""

    def row(ranks: int, rate: float) -> dict[str, Any]:
        half = json.dumps({"rate": HALF[ranks]}) if rounded else None
        return {"source": "imported", "_rounded": half, "rate_mean_run": rate}

    points = [({"ranks": n}, [row(n, rate) for rate in rates]) for n, rates in RATES.items()]
    metrics = {"rate": ("tokens/s", "higher")}
    return study_of(points, metrics, scaling="weak", main_metric="rate").tables


def test_intervals_are_wider_by_half_of_the_last_digit() -> None:
    exact, rounded = (tables(known)["points"] for known in (False, True))
    for place, ranks in enumerate(RATES):
        share = HALF[ranks] / np.mean(RATES[ranks])
        for end, sign in (("low", -1), ("high", 1)):
            name = f"rate_{end}_run"
            ratio = rounded[name][place] / exact[name][place]
            assert ratio == pytest.approx(1 + sign * share)
        assert rounded["rate_mean_run"][place] == exact["rate_mean_run"][place]
