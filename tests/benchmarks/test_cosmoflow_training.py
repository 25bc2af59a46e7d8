"""The CosmoFlow training benchmark as the launcher starts it: ``--run FILE`` on every rank."""

import shutil

import numpy as np
import pytest

from tests.benchmarks.programs import Program, check_failure, read, value

SMALL = {
    "sample_shape": [16, 16, 16, 4],
    "samples_per_file": 4,
    "samples_per_rank": 64,
    "validation_samples_per_rank": 16,
    "batch_size": 4,
    "conv_layers": 3,
    "filters": 4,
    "epochs": 3,
    "base_learning_rate": 0.01,
    "learning_rate_reference_batch": 4,
    "warmup_epochs": 1,
    "decay_epochs": [2],
    "decay_factors": [0.5],
}
PROGRAM = Program("cosmoflow_training", SMALL)
start = PROGRAM.start
SIZES = ("sample_shape", "samples_per_file", "samples_per_rank", "batch_size")
PIPELINE = Program("input_pipeline", {name: SMALL[name] for name in SIZES})


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set for two ranks of SMALL."""
    return PROGRAM.staged(tmp_path_factory, {"train": 32, "valid": 8})


SHORT = {"target_mae": 2.0, "dropout": 0.5}  # a target that every error meets


@pytest.mark.slow
def test_runs_of_one_seed_agree_and_repeats_differ(tmp_path, data):
    """Weights, dropout and the order of files are the seed's; sums on a CPU are in one order."""
    losses = [
        read(*start(tmp_path / str(number), data, repeat, **SHORT))[1]["loss"]
        for number, repeat in enumerate((0, 0, 1))
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-6)
    assert not np.isclose(losses[0], losses[2], rtol=1e-3).any()


@pytest.mark.slow
def test_two_ranks_stop_together_at_the_mean_error(tmp_path, data):
    changes = {"ranks": 2, "ranks_per_node": 2, "epochs": 40, "target_mae": 0.3}
    changes |= {"decay_epochs": [20]}
    native, samples = read(*start(tmp_path, data, **changes))
    ran = int(value(native, "epochs_run"))
    assert 1 < ran < 40
    errors = samples["validation_mae"]
    assert errors.shape == (ran, 2)
    assert (errors[:, 0] != errors[:, 1]).all()
    assert errors.mean(axis=1)[-1] <= 0.3 < errors.mean(axis=1)[:-1].min()
    assert value(native, "time_to_target") <= samples["epoch_ends"][-1].max()
    size = sum(path.stat().st_size for path in data.glob("train/*"))
    assert (native["work"]["samples"], native["work"]["bytes_per_epoch"]) == (128 * ran, size)
    times, lengths = samples["global_times"], np.diff(samples["epoch_ends"], axis=0, prepend=0)
    assert (lengths >= times + samples["validation_times"]).all()
    weights = value(native, "model_parameters")
    assert sum(native["notes"]["exchange"]["tensor_bytes"]) == 4 * weights
    assert native["notes"]["learning_rate"]["peak"] == pytest.approx(0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bytes_left", "file", "params", "code", "words"),
    [
        (1000, 2, {"pipeline": "processes"}, 65, ["part-000002.tfrecord is damaged"]),
        (5000, 3, {}, 65, ["part-000003.tfrecord is damaged ("]),
        (0, 20, {"ranks": 2}, 65, ["rank 1: input ended"]),  # rank 0, which waits, is silent
        (0, 3, {"samples_per_rank": 256}, 66, ["32 of 64 train files"]),
        (0, 40, {"base_learning_rate": 1e30}, 65, ["training diverged in epoch 0: loss is"]),
    ],
)
def test_data_that_cannot_be_used(tmp_path, data, bytes_left, file, params, code, words):
    broken = shutil.copytree(data, tmp_path / "set")
    path = broken / "train" / f"part-{file:06d}.tfrecord"
    if path.exists():
        path.write_bytes(path.read_bytes()[:bytes_left])
    program = PIPELINE if "pipeline" in params else PROGRAM
    done, out = program.start(tmp_path / "run", broken, **{"epochs": 1} | params)
    check_failure(program, done, out, code, words, params.get("ranks", 1))
