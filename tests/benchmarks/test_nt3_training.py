"""The NT3 program as the launcher starts it: one process per rank, ``--run FILE``."""

import shutil

import numpy as np
import pytest

from tests.benchmarks.programs import Program, check_failure, read, value

pytestmark = pytest.mark.slow

SMALL = {
    "features": 400,
    "train_samples": 80,
    "test_samples": 30,
    "filters": [4, 4],
    "dense_units": [16, 8],
    "total_epochs": 2,
    "learning_rate": 0.01,
}
PROGRAM = Program("nt3", SMALL)
start = PROGRAM.start


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return PROGRAM.staged(tmp_path_factory, {"train": 1, "test": 1})


def test_one_rank(data, tmp_path):
    done, out = start(tmp_path, data)
    assert done.stderr == ""
    native, samples = read(done, out)
    phases = ["import", "init", "import", "data_loading", "preprocessing", "build", "broadcast"]
    phases += ["training", "validation"] * 2 + ["evaluation", "teardown"]
    assert [name for name, _, _ in native["phase_spans"]] == phases
    assert native["work"] == {"samples_per_epoch": 80, "samples": 160, "phases": ["training"]}
    assert value(native, "training_time") == pytest.approx(samples["global_times"].sum())
    loading = value(native, "data_loading_time")
    assert samples["data_loading_times"].max() <= loading <= native["phases"]["data_loading"]
    size = sum(path.stat().st_size for path in data.glob("*/part-*"))
    assert value(native, "data_loading_rate") == pytest.approx(size / loading)
    # What is evaluated after the last epoch is what its validation has seen.
    assert value(native, "test_accuracy") == samples["validation_accuracy"][-1, 0]
    assert "time_to_target" not in native["metrics"]


def test_two_ranks_share_the_epochs(data, tmp_path):
    two = {"ranks": 2, "total_epochs": 4, "warmup_epochs": 1}
    native, samples = read(*start(tmp_path, data, **two))
    assert samples["loss"].shape == (2, 2) and native["work"]["samples"] == 320
    # Each in an order of its own over all samples; the same weights, tested on the same rows.
    assert (samples["loss"][:, 0] != samples["loss"][:, 1]).all()
    assert (np.ptp(samples["validation_loss"], axis=1) == 0).all()
    # Four steps an epoch: the last of the warm-up is three quarters up; then the peak.
    np.testing.assert_allclose(samples["learning_rate"], [[0.0175] * 2, [0.02] * 2])


def test_a_table_of_which_the_second_rank_reads_the_broken_line(data, tmp_path):
    broken = shutil.copytree(data, tmp_path / "set")
    table = broken / "train" / "part-000000.csv"
    lines = table.read_text().splitlines()
    lines[70] = lines[70].replace(",", ",x", 1)
    table.write_text("\n".join(lines) + "\n")
    two = {"ranks": 2, "partition": "samples", "csv_reader": "numpy"}
    done, out = PROGRAM.start(tmp_path / "run", broken, **two)
    check_failure(PROGRAM, done, out, 65, [f"{table} is damaged"], 2)
