"""The program torch_training: two ranks train as one does, and what a run leaves."""

import json

import numpy as np
import pytest

from scalesweep.compute.failure_cause import reason_of
from scalesweep.core.causes import Cause
from tests.benchmarks import cnn_programs
from tests.benchmarks.programs import read, start_torch
from tests.benchmarks.torch_programs import DEFAULTS, stage, start
from tests.fakes.torch_python import needs_torch
from torch_training import dataset

pytestmark = [pytest.mark.slow, needs_torch]

STEPS = 4
SETTINGS = {
    "ranks": 2, "model": "mlp", "layers": 2, "width": 32, "batch_size": 8,
    "optimizer": "momentum", "learning_rate": 0.05, "weight_decay": 0.01,
}  # fmt: skip
ALONE = {"data_parallel": "none", "place": [0, 1]}
TRANSFORMER = {
    "model": "transformer", "layers": 2, "width": 32, "heads": 2, "sequence": 8, "vocabulary": 50
}  # fmt: skip
# Four epochs in four steps and the batch that is looked at before them.
STAGED = {"input": "staged", "data_samples": 20, "samples_per_file": 5}
# By name: parameters on two ranks; each computes what is alone by itself.
CASES = {
    "ddp": {},
    "twice": ALONE | {"batch_size": 16},
    "accumulated": ALONE | {"accumulation": 2},
    "ddp accumulated": {"batch_size": 4, "accumulation": 2},
    "four": ALONE | {"batch_size": 4, "accumulation": 4},
    "transformer": TRANSFORMER,
    "transformer twice": TRANSFORMER | ALONE | {"batch_size": 16},
    "tied": TRANSFORMER | {"tied_weights": True},
    "tied twice": TRANSFORMER | ALONE | {"batch_size": 16, "tied_weights": True},
    "staged": STAGED,
    "staged twice": STAGED | ALONE | {"batch_size": 16},
    "staged workers": STAGED | {"batch_size": 4, "accumulation": 2, "loader_workers": 2},
    "staged tokens": TRANSFORMER | STAGED,
    "staged tokens twice": TRANSFORMER | STAGED | ALONE | {"batch_size": 16},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """By case and rank: losses, weights and sums of inputs."""
    folder = tmp_path_factory.mktemp("trained")
    data = {}
    for model, more in (("mlp", {}), ("transformer", TRANSFORMER)):
        data[model] = {"data": str(folder / f"data-{model}")}
        done = stage(folder / f"data-{model}", 4, **STAGED | more)
        assert done.returncode == 0, done.stderr
    settings = [DEFAULTS | SETTINGS | case for case in CASES.values()]
    cases = [json.dumps(c | (data[c["model"]] if c["input"] == "staged" else {})) for c in settings]
    for done in start_torch("train_torch.py", folder, STEPS, *cases, ranks=2):
        assert done.returncode == 0, done.stderr[-4000:]
    return {
        name: [dict(np.load(folder / f"case{number}-rank{rank}.npz")) for rank in (0, 1)]
        for number, name in enumerate(CASES)
    }


def close(first, second, error=2e-5):
    np.testing.assert_allclose(first["weights"], second["weights"], rtol=error, atol=error / 10)


@pytest.mark.parametrize("name", ["", "transformer ", "tied ", "staged ", "staged tokens "])
def test_two_ranks_train_to_the_weights_of_one_with_twice_the_batch(trained, name):
    two, alone = trained[f"{name}".strip() or "ddp"], trained[f"{name}twice"][0]
    np.testing.assert_array_equal(two[0]["weights"], two[1]["weights"])
    close(two[0], alone)
    losses = np.mean([rank["losses"] for rank in two], axis=0)
    np.testing.assert_allclose(losses, alone["losses"], rtol=1e-5)
    if "staged" not in name:
        assert np.diff(losses).max() < 0  # it learns


def test_accumulation_changes_nothing_but_rounding(trained):
    twice = trained["twice"][0]
    for name in ("accumulated", "four"):
        alone = trained[name][0]
        close(alone, twice)
        np.testing.assert_allclose(alone["losses"], twice["losses"], rtol=1e-5)
        assert sum(alone["input_sums"]) == pytest.approx(sum(twice["input_sums"]))
    close(trained["ddp accumulated"][0], twice)
    sums = [each["input_sums"].tolist() for each in trained["ddp accumulated"]]
    assert sums[0] + sums[1] == trained["four"][0]["input_sums"].tolist()


def test_processes_that_read_ahead_change_no_batch(trained):
    for rank in (0, 1):
        plain, ahead = (trained[name][rank]["input_sums"] for name in ("staged", "staged workers"))
        assert len(ahead) == 2 and ahead.sum() == pytest.approx(plain.sum())
    close(trained["staged workers"][0], trained["staged"][0])
    first, second = (trained["staged"][rank]["input_sums"][0] for rank in (0, 1))
    assert first != second


def test_data_that_cannot_be_read_is_one_line(tmp_path):
    data, params = tmp_path / "data", DEFAULTS | STAGED | {"model": "mlp", "data_samples": 15}
    assert stage(data, 3, **STAGED).returncode == 0
    assert dataset.damage(data, params, 0, 1) is None
    path = data / "train" / "part-000001.npy"
    path.write_bytes(path.read_bytes()[:-1])
    done, _ = start(tmp_path, data, **STAGED | {"data_samples": 15})
    assert done.returncode == 65 and done.stderr.count("\n") == 1
    assert f"{path} is damaged: remove it" in done.stderr
    assert dataset.damage(data, params, 0, 2) is None  # another rank looks at that file
    path.unlink()
    code, said = dataset.damage(data, params, 0, 2)
    assert code == 66 and f"1 of 3 train files (first {path.relative_to(data)})" in said
    code, said = dataset.damage(data, params | {"samples_per_file": 3}, 0, 1)
    assert code == 66 and "samples_per_file 5, not 3" in said


def test_training_is_that_of_cnn_training(tmp_path):
    """Same network, weights, images, optimiser and decay: the same losses in both frameworks."""
    shared = {
        "model": "resnet20", "batch_size": 8, "batches": 4, "warmup_batches": 1, "seed": 5,
        "optimizer": "momentum", "weight_decay": 0.01, "learning_rate": 0.01,
    }  # fmt: skip
    _, keras = read(*cnn_programs.start(tmp_path / "keras", data_set="cifar10", **shared))
    native, torch = read(*start(tmp_path / "torch", layers=12, width=768, **shared))
    np.testing.assert_allclose(torch["loss"], keras["loss"], rtol=2e-3)
    assert np.ptp(keras["loss"]) > 0.1 * keras["loss"].max()
    values = {name: metric["value"] for name, metric in native["metrics"].items()}
    assert values["model_parameters"] == 269_722
    assert values["peak_rss"] > 100e6 and "peak_memory_allocated" not in values
    assert "gradient_bytes" not in values and "tokens_per_second" not in values
    assert "tensor_bytes" not in native["notes"]["exchange"]
    rate = 8 * 4 / torch["step_times"].sum()
    assert values["samples_per_second"] == pytest.approx(rate, rel=0.2)
    assert values["flop_per_step"] == pytest.approx(8 * 3 * 2 * 40.8e6, rel=0.02)
    operations = values["flop_per_step"] / 8 * values["samples_per_second"]
    assert values["flop_per_second"] == pytest.approx(operations)
    assert native["work"] == {"samples_per_epoch": 32, "samples": 32, "phases": ["timed"]}


def test_why_a_network_beyond_the_hosts_memory_failed_is_seen(tmp_path):
    done, _ = start(tmp_path, width=3_000_000)
    reason = reason_of(done.stderr.splitlines(), of_one_rank=True)
    assert (done.returncode, reason.cause) == (1, Cause.OUT_OF_MEMORY)
