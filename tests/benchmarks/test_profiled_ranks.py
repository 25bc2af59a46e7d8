"""A benchmark program under a profiler: every rank leaves its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scalesweep.analysis.trace_account import COMMUNICATION, COMPUTATION, INPUT
from scalesweep.analysis.xplane import CPU, read_steps
from scalesweep.core.profilers import environment, lacks
from tests.benchmarks.programs import Program, read, warm
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

PROGRAM = Program(
    "cnn_training",
    {
        "model": "resnet20",
        "data_set": "cifar10",
        "batch_size": 4,
        "warmup_batches": 1,
        "batches": 2,
    },
)


def run(folder: Path, kind: str, ranks: int) -> Path:
    """Train a small CNN under a profiler; returns the folder of the profile."""
    (folder / "out").mkdir()
    env = environment(kind, folder / "out")
    read(*PROGRAM.start(folder, env=env, ranks=ranks, how=warm))
    return folder / "out" / "profile"


@pytest.mark.measured
def test_tensorflow_sees_the_operations(tmp_path):
    folder = run(tmp_path, "tensorflow", 1)
    (trace,) = folder.rglob("*.xplane.pb")
    assert b"Conv2D" in trace.read_bytes()
    account, operations = read_steps(trace.read_bytes())
    assert account.steps == 1  # of two: the first one follows on a barrier
    assert account.parts[COMPUTATION] > 0.3 * account.window_s
    # Its input is synthetic, and one rank exchanges nothing.
    assert account.parts[INPUT] is account.parts[COMMUNICATION] is None
    convolutions = [each.calls for each in operations
                    if each.device == CPU and each.operation.endswith("Conv2D")]  # fmt: skip
    assert convolutions == [19]  # of resnet20: one, and nine blocks of two
    backward = [each for each in operations if "Conv2DBackprop" in each.operation]
    assert all(each.gradient_s == each.seconds > 0 for each in backward) and len(backward) == 2
    # As the documentation says to open it in Perfetto.
    page = (ROOT / "docs" / "guide" / "profiles.md").read_text()
    (code,) = re.findall(r"python -c '(import sys; from tensorflow[^']*)'", page)
    done = subprocess.run([sys.executable, "-c", code, trace], capture_output=True, check=True)
    events = json.loads(done.stdout)["traceEvents"]
    assert any(event["ph"] == "X" and "Conv2D" in event["name"] for event in events)


def test_without_exchange_each_device_trains_by_itself(tmp_path):
    native, samples = without_exchange(tmp_path, variable_update="collective_all_reduce")
    assert native["mode"]["communication"] == native["mode"]["strategy"] == "none"
    assert lacks("noexchange", [], native) == ""
    assert samples["step_times"].shape == (2, 2)
    # Ranks that never meet learn on their own.
    assert np.ptp(samples["loss"], axis=1)[-1] > 0


def without_exchange(folder, **params):
    env = environment("noexchange", folder)
    native, samples = read(*PROGRAM.start(folder, env=env, ranks=2, how=warm, **params))
    return native["notes"], samples
