"""Intervals of points whose runs started in blocks, in every table that has them."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.blocks import Errors
from scalesweep.tables.machine_load import undisturbed
from tests.unit.tables.test_point_tables import Study

MODES, RANKS, REPEATS = ("a", "b"), (1, 2, 4), 4
Place = Callable[[int, int], int]


def in_blocks(place: int, repeat: int) -> int:
    return repeat * len(MODES) * len(RANKS) + place


def point_by_point(place: int, repeat: int) -> int:
    return place * REPEATS + repeat


def _seconds() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds of an epoch ``[point, repeat]`` on a machine that slows down."""
    generator = np.random.default_rng(7)
    levels = np.array([10.0, 12.0, 15.0, 11.0, 12.5, 17.0])[:, None]
    errors = generator.normal(0, 0.01, (6, REPEATS))
    return np.asarray(levels * np.exp(errors + 0.1 * np.arange(REPEATS)))


def _tables(
    folder: Path, began: Place, level: float | None = None, **changes: Any
) -> dict[str, pd.DataFrame]:
    """Two modes on 1, 2 and 4 ranks, whose runs began at these places; with a ``level``, repeats
    were added until points were precise."""
    study = Study(folder)
    if level:
        study.experiment["repeats"] = {"level": level}
    study.experiment["parameters"] = {"mode": {"default": "a"}, "ranks": {"default": 1}}
    seconds = _seconds()
    points = [{"ranks": ranks, "mode": mode} for mode in MODES for ranks in RANKS]
    for place, point in enumerate(points):
        for repeat in range(REPEATS):
            moment = datetime.fromtimestamp(1e9 + 60 * began(place, repeat), UTC).isoformat()
            values = {"started": moment, "ended": moment, **changes}
            study.run(point, float(seconds[place, repeat]), **values)
    return study.tables()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    return _tables(tmp_path_factory.mktemp("blocks"), in_blocks)


def test_repeats_until_precise_have_their_level_in_every_table_and_share_nothing(
    tmp_path: Path,
) -> None:
    for name in ("alone", "wide"):
        (tmp_path / name).mkdir()
    alone = _tables(tmp_path / "alone", point_by_point, source="imported")
    wide = _tables(tmp_path / "wide", in_blocks, 0.968)
    for table, name in (
        ("points", "total_time_{}_later"),
        ("scaling", "total_eff_{}_later"),
        ("comparisons", "{}"),
    ):
        low, high = name.format("low"), name.format("high")
        some = np.isfinite(alone[table][low].to_numpy())
        assert some.any(), table
        assert (wide[table][low] < alone[table][low])[some].all(), table
        assert (wide[table][high] > alone[table][high])[some].all(), table


def test_intervals_are_those_of_all_points(tables: dict[str, pd.DataFrame]) -> None:
    # Points of the same work per rank: rates are its samples by these seconds.
    rates = 100 * np.array(RANKS * 2)[:, None] / _seconds()
    errors = Errors(dict(enumerate(rates)), [(range(6), rates)])
    scaling = tables["scaling"]
    assert scaling["mode"].tolist() == ["a"] * 3 + ["b"] * 3
    for place, row in scaling.iterrows():
        assert isinstance(place, int)
        error = errors.mean(place)
        assert error is not None
        span = error.around(float(rates[place].mean()))
        low, high = (row[f"total_throughput_{side}_later"] for side in ("low", "high"))
        assert (low, high) == pytest.approx((span.low, span.high))
        if row["ranks"] > 1:
            error = errors.ratio(place, place // 3 * 3)
            assert error is not None
            span = error.around(row["total_speedup_later"])
            assert row["total_speedup_low_later"] == pytest.approx(span.low)
            assert row["total_eff_high_later"] == pytest.approx(span.high / row["ranks"])
    rows = tables["comparisons"].query("question == 'setting' and point_id.notna()")
    assert set(rows["how"]) == {"repeats"} and (rows["df"] > 2).all()


def test_runs_that_others_disturbed_enter_no_estimate() -> None:
    assert undisturbed([0.0, 0.4, None]) == [0, 2]
    # Two that nothing disturbed are to remain.
    assert undisturbed([0.0, 0.4, 0.4]) == [0, 1, 2] and undisturbed([0.4]) == [0]
