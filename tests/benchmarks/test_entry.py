"""How programs of the benchmarks are started: ``python workflow/benchmarks PROGRAM``."""

import os
import subprocess
import sys

import pytest

from tests.benchmarks.programs import BENCHMARKS, WORKFLOW, Program, entry


def call(*words, **changes):
    return subprocess.run(words, capture_output=True, text=True, check=False, **changes)


@pytest.mark.parametrize(
    "name", ["nt4", "nt3.stage", "nt3.", "", "harness", "json.tool", "../nt3", "nt3/main.py"]
)
def test_an_unknown_program_is_2_and_one_line(name):
    done = call(*entry(name))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        f"benchmarks: no program {name!r}; allowed: allreduce, cnn_training, compute_peak, "
        "copy_bandwidth, cosmoflow_training, data_loading, file_read, input_pipeline, "
        "memory_bandwidth, nt3, pair_latency, step_layers, torch_peak, torch_training\n"
    )


def test_without_a_program_it_is_2_and_one_line():
    done = call(*entry("")[:-1])
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_every_benchmark_declares_programs_that_are_there():
    for path in BENCHMARKS.glob("*/benchmark.py"):
        declared = Program(path.parent.name, {}).declared
        words = ["{python}", "{benchmarks}", path.parent.name, "--run", "{run_file}"]
        assert declared["command"] == words
        if "data" in declared:
            assert call(*entry(declared["data"]["program"]), "--help").returncode == 0


@pytest.mark.parametrize("safe", ["", "1"])
def test_neither_folder_nor_variables_matter(tmp_path, safe):
    """Packages of the same names elsewhere are not taken; a relative folder will do."""
    for name in ("nt3", "harness"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    env = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": safe}
    usage = "nt3: usage: nt3 --run FILE\n"
    assert call(*entry("nt3"), cwd=tmp_path, env=env).stderr == usage
    assert call(sys.executable, "benchmarks", "nt3", cwd=WORKFLOW, env=env).stderr == usage
