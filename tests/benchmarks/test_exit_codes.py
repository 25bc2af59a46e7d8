"""How programs start and fail: exit code and one line, of names, parameters and data."""

import json
import runpy
import subprocess
import threading

import pytest

from harness.program import ERROR, ProgramError, run_program, write_error
from tests.benchmarks.programs import BENCHMARKS, Program, check_failure, entry
from tests.benchmarks.test_cnn_training import PROGRAM as CNN
from tests.benchmarks.test_cosmoflow_training import PROGRAM as COSMOFLOW
from tests.benchmarks.test_nt3_training import PROGRAM as NT3

FIND = runpy.run_path(str(BENCHMARKS / "__main__.py"))["find"]
SERVERS, TOGETHER = "parameter_server", "collective_all_reduce"
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


@pytest.mark.parametrize("name", ["nt4", "nt3.stage", "../nt3", ""])
def test_an_unknown_program_is_2_and_one_line(name):
    words = entry(name) if name else entry(name)[:-1]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
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
            with pytest.raises(SystemExit, match="0"):
                FIND(declared["data"]["program"])(["--help"])


@pytest.mark.slow
@pytest.mark.parametrize(("program", "params", "code", "words"), FAILING)
def test_runs_that_fail(tmp_path, program, params, code, words):
    done, out = program.start(tmp_path, **params)
    check_failure(program, done, out, code, words, params.get("ranks", 1))


def test_a_rank_that_says_nothing_ends_after_the_one_that_says_why(tmp_path):
    """Its end may be that of all others: local_ranks and horovodrun end them."""
    path, out = Program("file_read", {"ranks": 1}).write_run(tmp_path)
    said = threading.Timer(0.3, write_error, (out, ProgramError(69, "no GPU")))

    def main(_run):
        said.start()
        raise ProgramError(69, "")

    assert run_program("file_read", main, ["--run", str(path)]) == 69
    assert json.loads((out / ERROR).read_text())["message"] == "no GPU"
