"""A training's rate beside comparable published ones: what is said, and where nothing is."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scalesweep.compare.normal import ABOVE, BELOW, UNCLEAR, WITHIN, place, points_of, sentence
from tests.fakes.results import Fake, make_results

SHAPE = {"parameters": 6.7e9, "dtype": "bfloat16", "device": "h100_sxm", "sequence": 2048}


def point(tokens: float | None, low: Any = None, high: Any = None, **more: Any) -> dict[str, Any]:
    rate = {"tokens": tokens, "tokens_low": low, "tokens_high": high}
    return {"point": "p", "source": "measured", "ranks": 8, **SHAPE, **rate, **more}


def rates(*values: float) -> pd.DataFrame:
    """Published rates of ``SHAPE``, on 8, 16, 4, ... ranks."""
    ranks = [(8, 16, 4)[n % 3] for n in range(len(values))]
    more = {"ranks": ranks, "tokens_per_second_of_a_rank": values}
    return pd.DataFrame({"source": "a", **SHAPE, **more})


PUBLISHED = rates(9000.0, 10000.0, 11000.0)


@pytest.mark.parametrize(
    ("tokens", "verdict"),
    [
        ((9800.0,), WITHIN), ((9000.0,), WITHIN), ((5000.0,), BELOW), ((12000.0,), ABOVE),
        ((8900.0, 8700.0, 9100.0), UNCLEAR), ((8900.0, 8800.0, 8950.0), BELOW),
        ((11200.0, 10900.0, 11500.0), UNCLEAR),
    ],
)  # fmt: skip
def test_where_a_rate_lies(tokens: tuple[float, ...], verdict: str) -> None:
    placed = place(point(*tokens), PUBLISHED)
    assert (placed["verdict"], placed["published"]) == (verdict, 3)
    assert (placed["least"], placed["most"]) == (9000, 11000)
    assert placed["ratio"] == pytest.approx(tokens[0] / 10000)
    assert ("in 25 % of cases" in sentence(placed)) == (verdict in (BELOW, ABOVE))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"device": "a100_80gb_sxm"}, "device (3)"), ({"dtype": "float8"}, "type of numbers (3)"),
        ({"parameters": 8.03e9}, "parameters (3)"), ({"sequence": 8192}, "tokens of a sample (3)"),
        ({"ranks": 64}, "ranks (3)"), ({"ranks": 32}, "ranks (2)"),
        ({"device": ""}, "its device is not stated"),
        ({"dtype": ""}, "the type of its numbers is not stated"),
        ({"parameters": None, "tokens": None}, "the number of its parameters is not stated"),
        ({"source": "simulated"}, "it is simulated"), ({"tokens": None}, "tokens/s are not known"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(change: dict[str, Any], reason: str) -> None:
    placed = place({**point(5000.0), **change}, PUBLISHED)
    assert "verdict" not in placed and reason in placed["reason"]
    assert placed["published"] == (1 if "(2)" in reason else 0)
    assert "(" not in reason or placed["left_out"] == reason


def test_points_without_a_result_are_left_out(tmp_path: Path) -> None:
    fakes = [Fake("io", {"ranks": [1, 2]}, fate=lambda p, _: {1: "done"}.get(p["ranks"], "HANG"))]
    make_results(tmp_path, fakes)
    assert [it["ranks"] for it in points_of(tmp_path)] == [1]
