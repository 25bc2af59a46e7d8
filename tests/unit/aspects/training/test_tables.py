"""Tables of training runs: epochs, accuracy, phases and power, and the columns they come from."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.aspects.energy.table import TOTAL
from tests.fakes.training import nt3, study_of


def test_epochs_table(tmp_path: Path) -> None:
    study = study_of(tmp_path, nt3())
    table = study.tables["epochs"]
    assert len(table) == 3 * (16 + 4 + 1)
    assert list(table.columns[:5]) == ["run_id", "repeat", "ranks", "source", "epoch"]
    run = table[(table["ranks"] == 4) & (table["repeat"] == 1)]
    assert run["epoch"].tolist() == [0, 1, 2, 3]
    ends = np.cumsum(run["global_times"] + run["validation_times"])
    assert run["epoch_ends"].tolist() == pytest.approx(ends)
    assert table.attrs["units"]["validation_accuracy"]["better"] == "higher"


def test_phases_table(tmp_path: Path) -> None:
    skipped = {"import": 3.0, "data_loading": 9.0, "odd": 1.0}

    def change(point: dict[str, Any], repeat: int) -> dict[str, Any]:
        return {"phases": skipped} if repeat == 2 and point["ranks"] == 1 else {}

    table = study_of(tmp_path, nt3(axes={"ranks": [1, 4]}, changes=change)).tables["phases"]
    first = table[table["ranks"] == 1].set_index("phase")
    assert list(first.index[:3]) == ["import", "init", "data_loading"]
    assert first.index[-1] == "odd"
    loading = first.loc["data_loading"]
    assert (loading["seconds"], loading["runs"]) == (pytest.approx((5 + 5 + 9) / 3), 3)
    assert loading["seconds_low"] < loading["seconds"] < loading["seconds_high"]
    # A phase that one repeat did not have is a mean over the others.
    assert (first.loc["init", "runs"], first.loc["init", "seconds"]) == (2, 1.0)
    assert first.loc["odd", "energy_runs"] == 0 and math.isnan(first.loc["odd", "energy"])
    assert loading["energy"] == pytest.approx(500.0)
    assert table.attrs["units"]["energy"]["unit"] == "J"


def test_power_table_keeps_the_energy(tmp_path: Path) -> None:
    study = study_of(tmp_path, nt3())
    table = study.tables["power"]
    assert set(table["ranks"]) == {1, 4, 16} and set(table["repeat"]) == {0}
    joules = study.tables["runs"].set_index("run_id")["energy_mean_run"]
    for run_id, rows in table.groupby("run_id"):
        total = rows[rows["domain"] == TOTAL]
        steps = np.diff(np.concatenate([[0.0], total["seconds"]]))
        assert (total["watts"] * steps).sum() == pytest.approx(joules[run_id], rel=0.02)
        core = rows[rows["domain"] == "core"]
        assert not core["counted"].any() and (core["watts"] * 2 <= total["watts"].max()).all()
        assert set(total["phase"].dropna()) >= {"import", "data_loading", "training"}
