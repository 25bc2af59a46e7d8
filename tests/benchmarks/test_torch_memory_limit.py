"""torch_training under a limit of memory: the stage that runs out is named, with bytes."""

import json
import os
import subprocess
import sys

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.core.paths import LAUNCHERS
from tests.benchmarks.torch_programs import DEFAULTS
from tests.conftest import ROOT
from tests.fakes.torch_python import TORCH, needs_torch
from tests.fakes.toy_run import spec

pytestmark = [pytest.mark.slow, needs_torch]

MIB = 2**20
BEYOND = 200 * MIB  # what it has once it is imported
# The last stage has the logits: 32 MiB of each micro-batch, and as much for their gradients.
PIPELINE = {
    "ranks": 2, "ranks_per_node": 2, "model": "transformer", "layers": 2, "width": 64, "heads": 2,
    "sequence": 64, "vocabulary": 1024, "batch_size": 512, "pp": 2, "micro_batches": 4,
    "intra_threads": 1, "inter_threads": 1, "warmup_batches": 1, "batches": 1,
}  # fmt: skip

# A build of PyTorch with CUDA takes three times as much as one without.
IMPORTED = """
import torch_training.benchmark
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmData")))
"""


def imported_bytes() -> int:
    """Memory that counts against ``prlimit --data``, before the program does anything."""
    path = {"PYTHONPATH": str(ROOT / "workflow" / "benchmarks"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(TORCH), "-c", IMPORTED], env={**os.environ, **path}, check=True, capture_output=True
    )
    return 1024 * int(done.stdout)


def test_the_stage_that_runs_out_is_named_with_its_bytes(tmp_path):
    limit = imported_bytes() + BEYOND
    ranks = [sys.executable, str(LAUNCHERS / "local_ranks.py"), "2"]
    limited = ["prlimit", f"--data={limit}"]
    program = [str(TORCH), str(ROOT / "workflow" / "benchmarks"), "torch_training"]
    order = spec(
        tmp_path, benchmark="torch_training", params=DEFAULTS | PIPELINE,
        argv=[*ranks, *limited, *program, "--run", "{run_file}"], time_limit_s=200.0,
    )  # fmt: skip
    assert launch(order, ROOT) == 1
    left = json.loads((tmp_path / order["run_id"] / "failure.json").read_text())
    assert left["cause"] == "OUT_OF_MEMORY" and left["exit_code"] == 71
    assert left["detail"].startswith("out of memory on the host, in warm-up steps (asked for 32.0 ")
    assert "(rank 1 on " in left["detail"]
