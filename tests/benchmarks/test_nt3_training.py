"""The NT3 program as the launcher starts it: one process per rank, ``--run FILE``."""

import numpy as np
import pytest

from tests.benchmarks import nt3_programs
from tests.benchmarks.nt3_programs import start
from tests.benchmarks.programs import read, start_helper

pytestmark = pytest.mark.slow

TOLERANCE = 1e-5  # of losses of equal runs; here they are equal to the last bit


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nt3") / "csv"
    done = nt3_programs.stage(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def one_rank(data, tmp_path_factory):
    """A run of one rank with all metrics; several tests look at it."""
    done, out = start(tmp_path_factory.mktemp("one"), data)
    assert done.stderr == ""
    return read(done, out)


def value(native, name):
    return native["metrics"][name]["value"]


def test_one_rank(one_rank, data):
    native, samples = one_rank
    over_ranks = {"span_busiest", "span_transfer"}
    assert {samples[name].shape for name in over_ranks} == {(2,)}
    apart = {"data_loading_times", *over_ranks}
    epochs = {name: each.shape for name, each in samples.items() if name not in apart}
    assert set(epochs) == {
        "local_times", "global_times", "validation_times", "epoch_ends", "span_input",
        "span_compute", "span_communication", "span_between", "span_wait", "learning_rate", "loss",
        "accuracy", "validation_loss", "validation_accuracy",
    }  # fmt: skip
    assert set(epochs.values()) == {(2, 1)}
    assert samples["data_loading_times"].shape == (1, 1)
    phases = ["import", "init", "import", "data_loading", "preprocessing", "build", "broadcast"]
    phases += ["training", "validation"] * 2 + ["evaluation", "teardown"]
    assert [name for name, _, _ in native["phase_spans"]] == phases
    assert native["work"] == {"samples_per_epoch": 80, "samples": 160, "phases": ["training"]}
    assert value(native, "training_time") == pytest.approx(samples["global_times"].sum())
    assert samples["global_times"].sum() <= native["phases"]["training"]
    assert value(native, "data_loading_time") >= samples["data_loading_times"].max()
    assert value(native, "data_loading_time") <= native["phases"]["data_loading"]
    size = sum(path.stat().st_size for path in data.glob("*/part-*"))
    rate = size / value(native, "data_loading_time")
    assert value(native, "data_loading_rate") == pytest.approx(rate)
    # What is evaluated after the last epoch is what its validation has seen.
    assert value(native, "test_accuracy") == samples["validation_accuracy"][-1, 0]
    assert value(native, "test_accuracy") * 30 == pytest.approx(
        round(value(native, "test_accuracy") * 30)
    )
    assert "time_to_target" not in native["metrics"]
    assert native["notes"]["loading"]["package"].startswith("pandas ")
    assert native["notes"]["learning_rate"] == {"base": 0.01, "peak": 0.01}
    (memory,) = native["notes"]["memory"].values()
    assert memory["nodes"] or memory["mode"] is None


def test_equal_runs_agree_and_repeats_do_not(one_rank, data, tmp_path):
    _, first = one_rank
    _, again = read(*start(tmp_path / "again", data, csv_reader="numpy"))
    _, repeat = read(*start(tmp_path / "repeat", data, repeat=1))
    for name in ("loss", "validation_loss"):
        np.testing.assert_allclose(again[name], first[name], rtol=TOLERANCE)
        assert np.abs(repeat[name] / first[name] - 1).min() > 100 * TOLERANCE


def test_two_ranks_share_the_epochs(data, tmp_path):
    params = {"ranks": 2, "total_epochs": 4, "warmup_epochs": 1, "fusion_threshold_mb": 3}
    native, samples = read(*start(tmp_path, data, **params))
    assert samples["loss"].shape == (2, 2)
    assert samples["data_loading_times"].shape == (1, 2)
    # Each in an order of its own over all samples; the same weights, tested on the same rows.
    assert (samples["loss"][:, 0] != samples["loss"][:, 1]).all()
    np.testing.assert_array_equal(
        samples["validation_loss"][:, 0], samples["validation_loss"][:, 1]
    )
    assert native["work"]["samples_per_epoch"] == 160 and native["work"]["samples"] == 320
    assert native["notes"]["learning_rate"] == {"base": 0.01, "peak": 0.02}
    weights = native["metrics"]["model_parameters"]["value"]
    assert sum(native["notes"]["exchange"]["tensor_bytes"]) == 4 * weights
    # Four steps an epoch: the last of the warm-up is three quarters up; then the peak.
    np.testing.assert_allclose(samples["learning_rate"], [[0.0175] * 2, [0.02] * 2])
    assert native["environment"]["variables"]["HOROVOD_FUSION_THRESHOLD"] == str(3 << 20)


def test_two_ranks_train_as_one_with_twice_the_batch(data, tmp_path):
    """On shards; weights, scaling and losses."""
    common = {"partition": "samples", "dropout": 0.0, "shuffle": False, "total_epochs": 3}
    common |= {"learning_rate_scaling": "none", "learning_rate": 0.1, "optimizer": "momentum"}
    common |= {"csv_reader": "numpy"}
    for ranks in (1, 2):
        folder = tmp_path / str(ranks)
        params = common | {"ranks": ranks, "batch_size": 20 // ranks}
        path, _ = nt3_programs.write_run(folder, data, **params)
        start_helper("train_nt3.py", path, folder, ranks=ranks)
    alone, *pair = (
        dict(np.load(tmp_path / str(ranks) / f"rank{rank}.npz"))
        for ranks, rank in ((1, 0), (2, 0), (2, 1))
    )
    losses = np.mean([each["loss"] for each in pair], axis=0)
    np.testing.assert_allclose(losses, alone["loss"], rtol=1e-4)
    for name in alone.keys() - {"loss"}:
        np.testing.assert_array_equal(pair[0][name], pair[1][name])
        np.testing.assert_allclose(pair[0][name], alone[name], rtol=1e-3, atol=1e-5)
    assert alone["loss"][-1] < alone["loss"][0] - 1e-3


def test_training_stops_at_the_target(data, tmp_path):
    native, samples = read(*start(tmp_path, data, target_accuracy=0.2, total_epochs=50))
    assert samples["loss"].shape == (1, 1) or samples["validation_accuracy"][0, 0] < 0.2
    epochs = len(samples["loss"])
    assert epochs < 50 and value(native, "epochs_run") == epochs
    assert samples["validation_accuracy"][-1, 0] >= 0.2
    assert value(native, "time_to_target") == samples["epoch_ends"][-1, 0]
