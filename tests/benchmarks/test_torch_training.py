"""The program torch_training: what a run reads and leaves."""

import numpy as np
import pytest

from scalesweep.compute.failure_cause import reason_of
from scalesweep.core.causes import Cause
from tests.benchmarks import test_cnn_training
from tests.benchmarks.programs import PYTORCH, Program, read
from tests.fakes.torch_python import needs_torch

pytestmark = [pytest.mark.slow, needs_torch]

SMALL = {
    "model": "mlp", "layers": 2, "width": 32, "batch_size": 8, "warmup_batches": 1, "batches": 4,
    "intra_threads": 1, "inter_threads": 1,
}  # fmt: skip
PROGRAM = Program("torch_training", SMALL, PYTORCH)
start = PROGRAM.start
STAGED = {"input": "staged", "data_samples": 15, "samples_per_file": 5}


def test_data_that_cannot_be_read_are_one_line(tmp_path):
    data = tmp_path / "data"
    assert PROGRAM.stage(data, {"train": 3}, **STAGED).returncode == 0
    path = data / "train" / "part-000001.npy"
    done, _ = start(tmp_path, data, pin_memory=True, **STAGED)
    assert done.returncode == 69 and "pin_memory true: there is no GPU" in done.stderr
    path.write_bytes(path.read_bytes()[:-1])
    done, _ = start(tmp_path, data, **STAGED)
    assert done.returncode == 65 and done.stderr.count("\n") == 1
    assert f"{path} is damaged: remove it" in done.stderr
    path.unlink()
    done, _ = start(tmp_path, data, **STAGED)
    assert done.returncode == 66 and done.stderr.count("\n") == 1
    assert f"1 of 3 train files (first {path.relative_to(data)})" in done.stderr
    done, _ = start(tmp_path, data, **STAGED | {"samples_per_file": 3})
    assert done.returncode == 66 and "samples_per_file 5, not 3" in done.stderr


def test_without_a_compiler_compile_is_not_supported(tmp_path):
    # Nothing is on PATH, and nothing is taken of what PyTorch has compiled before.
    env = {"PATH": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done, _ = start(tmp_path, env=env, compile=True)
    assert done.returncode == 69 and done.stderr.count("\n") == 1
    assert "compile true: " in done.stderr and "No working C++ compiler" in done.stderr


SHARED = {
    "model": "resnet20", "batch_size": 8, "batches": 4, "warmup_batches": 1, "seed": 5,
    "optimizer": "momentum", "weight_decay": 0.01, "learning_rate": 0.01,
}  # fmt: skip


def test_training_is_that_of_cnn_training(tmp_path):
    """Same network, weights, images, optimiser and decay: the same losses in both frameworks."""
    _, keras = read(*test_cnn_training.start(tmp_path / "keras", data_set="cifar10", **SHARED))
    native, torch = read(*start(tmp_path / "torch", layers=12, width=768, **SHARED))
    np.testing.assert_allclose(torch["loss"], keras["loss"], rtol=2e-3)
    values = {name: metric["value"] for name, metric in native["metrics"].items()}
    assert values["model_parameters"] == 269_722
    assert native["notes"]["tf32"]["allowed"]  # PyTorch's default for convolutions
    assert np.ptp(keras["loss"]) > 0.1 * keras["loss"].max()
    assert values["peak_rss"] > 100e6 and "peak_memory_allocated" not in values
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
