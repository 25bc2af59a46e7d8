"""Predicted runtimes: the table, and what the plan and job requests make of it."""

from pathlib import Path

import pytest

from scalesweep.analysis.table_io import read_table
from tests.fakes.results import Fake, make_results

COUNTS = [1, 2, 4, 8, 32]  # 16 is a gap


@pytest.mark.parametrize("scaling", ["weak", "strong"])
def test_runs_of_counts_without_a_result_have_a_runtime(tmp_path: Path, scaling: str) -> None:
    def fate(point: dict[str, object], repeat: int) -> str:
        return "done" if point["ranks"] in COUNTS else "new"

    fakes = [
        Fake("far", {"ranks": [*COUNTS, 16, 64, 100_000], "batch_size": [1, 2]}, scaling, repeats=2,
             epochs=0, metrics={"bus_bandwidth": ("bytes/s", "higher")}, fate=fate,
             source="measured"),
        Fake("simulated", {"ranks": [*COUNTS, 64]}, scaling, repeats=1, fate=fate),
        Fake("short", {"ranks": [1, 2, 64]}, scaling, repeats=1, source="measured",
             fate=lambda p, r: "done" if p["ranks"] < 3 else "new"),
    ]  # fmt: skip
    tables = make_results(tmp_path, fakes) / "tables"
    table = read_table(tables / "far" / "runtimes.parquet")
    # Every run took 600 s; 100,000 ranks are more than 8 times 32.
    assert len(table) == 4
    assert table["run_id"].str.startswith("data_loading-r64-").all()
    assert table["expected_s"].between(600 * 0.99, 600 * 1.01).all()
    assert (table["low_s"] < 600).all() and (table["high_s"] > 600).all()
    for name in ("simulated", "short"):
        assert not (tables / name / "runtimes.parquet").exists()
