"""How programs of the benchmarks are started: ``python workflow/benchmarks PROGRAM``."""

import subprocess

import pytest

from tests.benchmarks.programs import BENCHMARKS, Program, entry


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
