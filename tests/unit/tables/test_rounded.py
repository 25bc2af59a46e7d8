"""Numbers that are printed with few digits have wider intervals: all may be off to one side."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.aspects.make_tables import make_tables
from tests.fakes.plan import whole_plan

RATES = {1: (2850.0, 2860.0, 2840.0), 8: (22800.0, 22700.0, 22900.0)}
HALF = {1: 5.0, 8: 50.0}


def tables(rounded: bool) -> dict[str, Any]:
    """Weak scaling by a rate with three digits."""
    runs, rows = [], []
    for ranks, rates in RATES.items():
        for repeat, rate in enumerate(rates):
            run_id = f"r{ranks}-{repeat}"
            point = {"ranks": ranks}
            runs.append({"run_id": run_id, "repeat": repeat, "point": point, "status": "done"})
            rows.append(
                {"run_id": run_id, "source": "imported", "started": "2026-01-01", "benchmark": "b",
                 "repeat": repeat, "samples": None, "warnings": None,
                 "_rounded": json.dumps({"rate": HALF[ranks]}) if rounded else None,
                 "rate_mean_run": rate}
            )  # fmt: skip
    entry: dict[str, Any] = {
        "name": "e", "axes": ["ranks"], "runs": runs, "scaling": "weak", "work": [], "fixed": {},
        "scale": "ranks", "main_metric": "rate",
    }  # fmt: skip
    plan = whole_plan({"experiments": [entry]})
    summary = pd.DataFrame(rows)
    meaning = {"unit": "tokens/s", "better": "higher", "scope": "total"}
    summary.attrs["metrics"] = {"b": {"rate": meaning}}
    return dict(make_tables(summary, plan)["e"])


def test_intervals_are_wider_by_half_of_the_last_digit() -> None:
    exact, rounded = (tables(known)["points"] for known in (False, True))
    for place, ranks in enumerate(RATES):
        share = HALF[ranks] / np.mean(RATES[ranks])
        for end, sign in (("low", -1), ("high", 1)):
            name = f"rate_{end}_run"
            ratio = rounded[name][place] / exact[name][place]
            assert ratio == pytest.approx(1 + sign * share)
        assert rounded["rate_mean_run"][place] == exact["rate_mean_run"][place]
