"""A benchmark program under a profiler: every rank leaves its own."""

import json
import os
import pstats
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "workflow" / "benchmarks" / "cnn_training"
LAUNCHER = ROOT / "workflow" / "launchers" / "horovodrun.py"
sys.path.insert(0, str(ROOT))

from scalesweep.benchmark import load_benchmark
from scalesweep.profiling import TIMELINE, environment


def run(folder: Path, kind: str, ranks: int) -> Path:
    """Train a small CNN under a profiler; returns the folder of the profile."""
    params = load_benchmark("cnn_training").defaults | {
        "ranks": ranks, "model": "resnet20", "data_set": "cifar10", "batch_size": 4,
        "warmup_batches": 1, "batches": 2,
    }  # fmt: skip
    out = folder / "out"
    out.mkdir()
    content = {
        "run_id": "cnn_training-r1-000000000000", "benchmark": "cnn_training", "version": 1,
        "params": params, "repeat": 0, "data": None, "out": str(out), "node_local": str(folder),
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(content))
    words = [sys.executable, PROGRAM / "main.py", "--run", folder / "run.json"]
    if ranks > 1:
        words = [sys.executable, LAUNCHER, "--gloo", "-np", ranks, *words]
    gloo = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | gloo | environment(kind, out),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (out / "native.json").is_file()
    return out / "profile"


def test_cprofile_of_two_ranks(tmp_path):
    folder = run(tmp_path, "cprofile", 2)
    assert sorted(path.name for path in folder.iterdir()) == ["rank0.prof", "rank1.prof"]
    for path in folder.iterdir():
        functions = {name for _, _, name in pstats.Stats(str(path)).stats}
        assert {"main", "take_steps"} <= functions


def test_tensorflow_sees_the_operations(tmp_path):
    folder = run(tmp_path, "tensorflow", 1)
    (trace,) = folder.rglob("*.xplane.pb")
    assert b"Conv2D" in trace.read_bytes()


def test_horovod_timeline_sees_the_reductions(tmp_path):
    folder = run(tmp_path, "horovod_timeline", 2)
    assert "gradient_0" in (folder / TIMELINE).read_text()
