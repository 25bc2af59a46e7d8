"""How programs start and fail: exit code and one line, of names, parameters and data."""

import json
import shutil
import subprocess

import pytest

from tests.benchmarks.programs import BENCHMARKS, Program, entry, warm
from tests.benchmarks.test_cnn_training import PROGRAM as CNN
from tests.benchmarks.test_cosmoflow_training import PROGRAM as COSMOFLOW
from tests.benchmarks.test_nt3_training import PROGRAM as NT3

SERVERS, TOGETHER = "parameter_server", "collective_all_reduce"
SIZES = ("sample_shape", "samples_per_file", "samples_per_rank", "batch_size")
PIPELINE = Program("input_pipeline", {name: COSMOFLOW.small[name] for name in SIZES})
# Program, parameters, exit code, words of the line; of runs that have no data set.
FAILING = [
    (CNN, {"learning_rate": 1e30}, 65, ["the loss is nan", "learning_rate 1e+30"]),
    (CNN, {"variable_update": "replicated", "all_reduce": "nccl"}, 69, ["all_reduce nccl"]),
    (CNN, {"variable_update": SERVERS, "parameter_device": "gpu"}, 69, ["parameter_device gpu"]),
    (CNN, {"variable_update": TOGETHER, "ranks": 2, "devices_per_rank": 2}, 69, ["one CPU device"]),
    (COSMOFLOW, {"decay_epochs": [4, 2], "decay_factors": [0.5, 0.2]}, 2, ["must ascend"]),
    (COSMOFLOW, {"input": "dummy", "precision": "mixed_float16"}, 69, ["mixed_float16: "]),
    (NT3, {}, 66, ["names no data set"]),
    (Program("compute_peak", {}), {"tf32": True}, 69, ["no GPU of compute capability 8.0"]),
    (Program("copy_bandwidth", {}), {"direction": "device_to_device"}, 69, ["no GPU here"]),
    (Program("file_read", {"ranks": 1}), {}, 66, ["names no data set"]),
]


def call(*words, **changes):
    return subprocess.run(words, capture_output=True, text=True, check=False, **changes)


@pytest.mark.parametrize("name", ["nt4", "nt3.stage", "../nt3", ""])
def test_an_unknown_program_is_2_and_one_line(name):
    done = call(*(entry(name) if name else entry(name)[:-1]))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        f"benchmarks: no program {name!r}; allowed: allreduce, cnn_training, compute_peak, "
        "copy_bandwidth, cosmoflow_training, data_loading, file_read, input_pipeline, "
        "memory_bandwidth, nt3, pair_latency, step_layers, torch_peak, torch_training\n"
    )


def test_every_benchmark_declares_programs_that_are_there():
    for path in BENCHMARKS.glob("*/benchmark.py"):
        declared = Program(path.parent.name, {}).declared
        words = ["{python}", "{benchmarks}", path.parent.name, "--run", "{run_file}"]
        assert declared["command"] == words
        if "data" in declared:
            assert call(*entry(declared["data"]["program"]), "--help").returncode == 0


def told(program, done, out, code, words, ranks=1):
    """A run that failed has an exit code, one line and no result."""
    assert done.returncode == code or (ranks > 1 and done.returncode), done.stderr
    error = json.loads((out / "native_error.json").read_text())
    assert error["exit_code"] == code, error
    assert [word for word in words if word not in error["message"]] == [], error
    line = f"{program.name}: {error['message']}\n"
    assert done.stderr.count(line) == 1
    assert ranks > 1 or done.stderr.endswith(line)
    assert "Graph execution error" not in done.stderr
    assert not (out / "native.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("program", "params", "code", "words"), FAILING)
def test_runs_that_fail(tmp_path, program, params, code, words):
    done, out = program.start(tmp_path, **params)
    told(program, done, out, code, words, params.get("ranks", 1))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set of CosmoFlow for two ranks."""
    return COSMOFLOW.staged(tmp_path_factory, {"train": 32, "valid": 8})


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
    program = PIPELINE if "pipeline" in params else COSMOFLOW
    done, out = program.start(tmp_path / "run", broken, **{"epochs": 1} | params)
    told(program, done, out, code, words, params.get("ranks", 1))


@pytest.mark.slow
def test_a_table_of_which_the_second_rank_reads_the_broken_line(tmp_path):
    broken = tmp_path / "set"
    assert NT3.stage(broken, {"train": 1, "test": 1}, how=warm).returncode == 0
    table = broken / "train" / "part-000000.csv"
    lines = table.read_text().splitlines()
    lines[70] = lines[70].replace(",", ",x", 1)
    table.write_text("\n".join(lines) + "\n")
    two = {"ranks": 2, "partition": "samples", "csv_reader": "numpy"}
    done, out = NT3.start(tmp_path / "run", broken, **two)
    told(NT3, done, out, 65, [f"{table} is damaged"], 2)
