"""The CNN training benchmark as the launcher starts it: one process per rank, ``--run FILE``."""

import json

import numpy as np
import pytest

from cnn_training import metrics
from tests.benchmarks.cnn_programs import PROGRAM, start
from tests.benchmarks.programs import read, start_helper, warm


def value(native, name):
    return native["metrics"][name]["value"]


def test_metrics_are_those_of_the_formulas():
    """Two ranks, B = 6, by hand; rank 0 runs at 2, 3, 2 and 6 images/s, rank 1 at 3 always."""
    times = np.array([[3.0, 2.0], [2.0, 2.0], [3.0, 2.0], [1.0, 2.0]])
    warmup = np.array([[6.0, 2.0]])
    losses = np.array([[5.0, 4.0]] * 3 + [[2.0, 1.0]])
    found = metrics.metrics(times, warmup, losses, wall=10.0, images=6)
    expected = {
        "total_images_per_second": 8 * 6 / 10,
        "images_per_second": (6 / 2.25 + 3) / 2,
        # s = 2, 3, 2, 6: variance (1.25^2 + 0.25^2 + 1.25^2 + 2.75^2) / 4
        "images_per_second_uncertainty": (2.6875**0.5 / 2 + 0) / 2,
        # median 2.5, deviations 0.5, 0.5, 0.5, 3.5
        "images_per_second_jitter": (1.4826 * 0.5 + 0) / 2,
        # with the warm-up 1, 2, 3, 2, 6
        "median_images_per_second": (2 + 3) / 2,
        "step_time_max": 3.0,
        "final_loss": 1.5,
    }
    assert {name: each["value"] for name, each in found.items()} == pytest.approx(expected)
    assert found["step_time_max"]["better"] == "lower"
    assert found["total_images_per_second"]["scope"] == "total"


@pytest.mark.slow
@pytest.mark.measured
def test_one_rank(tmp_path):
    done, out = start(
        tmp_path, model="resnet20", data_set="cifar10", optimizer="adam", intra_threads=1
    )
    native, samples = read(done, out)
    assert done.stderr == ""
    assert {name: each.shape for name, each in samples.items()} == {
        "warmup_step_times": (2, 1),
        "step_times": (6, 1),
        "loss": (6, 1),
        **dict.fromkeys(
            ("span_input", "span_compute", "span_communication", "span_between"), (6, 1)
        ),
    }
    assert set(native["phases"]) == {"import", "init", "warmup", "timed", "teardown"}
    assert native["work"] == {"samples_per_epoch": 24, "samples": 24, "phases": ["timed"]}
    assert native["notes"]["mode"]["synchronous"] is True
    assert native["notes"]["devices"] == [["CPU:0"]]
    assert native["notes"]["batch"] == {"global": 4, "per_device": 4}
    assert native["notes"]["weights"] == {"trainable": 269722, "all": 271098}
    assert not native["notes"]["exchange"].get("tensor_bytes")
    assert native["environment"]["ranks"][0]["intra_threads"] == 1
    # What the wall clock saw is what the steps took, and the metrics follow from the samples.
    times = samples["step_times"]
    timed = native["phases"]["timed"]
    assert times.sum() <= timed < times.sum() + samples["warmup_step_times"].sum()
    recomputed = metrics.metrics(
        times, samples["warmup_step_times"], samples["loss"], wall=1.0, images=4
    )
    for name in set(recomputed) - {"total_images_per_second"}:
        assert native["metrics"][name] == recomputed[name]
    total = value(native, "total_images_per_second")
    assert 24 / timed <= total <= 24 / times.sum()
    assert value(native, "model_parameters") == 269722
    # Tracing and first use fall into the warm-up.
    assert samples["warmup_step_times"][0, 0] > np.median(times)
    assert samples["loss"][-1, 0] < samples["loss"][0, 0]


@pytest.mark.slow
@pytest.mark.measured
def test_two_ranks_on_horovod_with_its_knobs(tmp_path):
    knobs = {
        "fusion_threshold_mb": 3,
        "cycle_time_ms": 2.5,
        "hierarchical_allreduce": True,
        "autotune": True,
        "compression": "fp16",
    }
    done, out = start(tmp_path, ranks=2, ranks_per_node=2, **knobs)
    native, samples = read(done, out)
    assert samples["step_times"].shape == (6, 2)
    assert samples["loss"].shape == (6, 2)
    assert (samples["loss"][:, 0] != samples["loss"][:, 1]).all()
    assert native["work"]["samples_per_epoch"] == 2 * 4 * 6
    assert len({rank["pid"] for rank in native["environment"]["ranks"]}) == 2
    assert native["notes"]["mode"]["strategy"] == "horovod"
    exchange = native["notes"]["exchange"]  # two bytes a value: compressed
    assert (exchange["by"], exchange["backend"], exchange["local_ranks"]) == ("horovod", "gloo", 2)
    assert sum(exchange["tensor_bytes"]) == 2 * value(native, "model_parameters")
    variables = native["environment"]["variables"]
    assert variables["HOROVOD_FUSION_THRESHOLD"] == str(3 << 20)
    assert variables["HOROVOD_CYCLE_TIME"] == "2.5"
    assert variables["HOROVOD_HIERARCHICAL_ALLREDUCE"] == "1"
    assert variables["HOROVOD_AUTOTUNE"] == "1"
    # Autotuning changes these while the program runs.
    assert (exchange["bucket_bytes"], exchange["cycle_s"]) == (None, None)
    assert exchange["from"]["cycle_s"] == "autotune"
    wall = 48 / value(native, "total_images_per_second")
    # On rank 0, whose clock the wall time is of: rank 1 may leave the barrier before it.
    assert samples["step_times"][:, 0].sum() <= wall <= native["phases"]["timed"]


@pytest.mark.slow
@pytest.mark.parametrize("given_by_slurm", [False, True])
def test_ranks_of_a_host_take_its_gpus_in_turn(given_by_slurm):
    """No GPU is here: TensorFlow and Horovod are told of some (`fake_gpus.py`)."""
    four = {"gpus": 4, "local_rank": 1, "local_size": 2}
    served = {"variable_update": "parameter_server"}
    cases = [
        four | {"params": params}
        for params in (
            {"devices_per_rank": 2},
            {"devices_per_rank": 3},
            served | {"ranks": 2, "devices_per_rank": 2},
            served | {"ranks": 2, "parameter_device": "gpu"},
            served | {"xla": True},
            {"all_reduce": "nccl", "variable_update": "collective_all_reduce"},
        )
    ]
    env = {"SLURM_GPUS_PER_TASK": "2"} if given_by_slurm else {}
    done = start_helper("fake_gpus.py", *map(json.dumps, cases), env=env)
    found = json.loads(done.stdout)
    assert {kind for kind, *_ in found} == {"GPU"}
    two = [0, 1] if given_by_slurm else [2, 3]
    assert found[0] == ["GPU", two, [f"GPU {number}" for number in two], None]
    if not given_by_slurm:
        assert found[1][3] == [69, "devices_per_rank 3: 4 GPUs for 2 ranks of a host"]
    assert found[2] == ["GPU", two, [], None]  # they belong to the server of this rank
    code, message = found[3][3]
    assert code == 69
    assert "parameter_device gpu" in message
    assert "use parameter_device cpu" in message
    assert found[4][3][1].startswith("xla true")
    assert found[5][3] is None


@pytest.mark.slow
def test_images_from_files_and_broken_ones(tmp_path):
    data = tmp_path / "set"
    done = PROGRAM.stage(data, {"train": 2}, how=warm, data_set="cifar10", images_per_file=16)
    assert done.returncode == 0, done.stderr
    files = {"input": "tfrecords", "images_per_file": 16, "data_images": 32}
    files |= {"model": "alexnet", "data_set": "cifar10", "ranks": 2}
    # Rank 0 opens the files of both, each on its own server.
    done, out = start(tmp_path, data=data, variable_update="parameter_server", **files)
    native, samples = read(done, out)
    assert samples["step_times"].shape == samples["loss"].shape == (6, 2)
    assert (samples["loss"][:, 0] != samples["loss"][:, 1]).all()
    assert native["notes"]["mode"]["communication"] == "gRPC"
    # Horovod only gathers here, so it is told to look for work less often.
    assert native["environment"]["variables"]["HOROVOD_CYCLE_TIME"] == "10"

    path = data / "train" / "part-000001.tfrecord"
    path.write_bytes(path.read_bytes()[:-1000])
    done, out = start(tmp_path / "cut", data=data, **files)
    assert done.returncode != 0
    error = json.loads((out / "native_error.json").read_text())
    assert error["exit_code"] == 65
    assert str(path) in error["message"]
    assert "graph" not in error["message"].lower()
    assert error["message"].endswith("remove it, and the next `snakemake` makes it again")
    assert not (out / "native.json").exists()
