"""The canary's allreduce through torch.distributed, with real ranks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalesweep.core.paths import CANARY, LAUNCHERS
from tests.fakes.torch_python import TORCH, needs_torch

pytestmark = [pytest.mark.slow, needs_torch]


def left(folder: Path, *before: str) -> list[dict[str, object]]:
    """What two ranks leave of their allreduce; ``before`` comes before the program."""
    words = [sys.executable, str(LAUNCHERS / "local_ranks.py"), "2", *before, str(TORCH)]
    words += [str(CANARY), "--out", str(folder), "--seconds", "0.01", "--allreduce=torch"]
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*-allreduce.json"))]


def test_ranks_of_pytorch_sum_up_an_array(tmp_path: Path) -> None:
    rates = [part["allreduce"] for part in left(tmp_path / "out")]
    assert len(rates) == 2 and all(isinstance(rate, float) and rate > 1e6 for rate in rates)


def test_each_rank_alone_leaves_it_out_with_the_reason(tmp_path: Path) -> None:
    parts = left(
        tmp_path / "out", "env", "WORLD_SIZE=1", "RANK=0", "LOCAL_WORLD_SIZE=1", "LOCAL_RANK=0"
    )
    why = "torch.distributed does not know of other ranks"
    assert [part["left_out"] for part in parts] == 2 * [{"allreduce": why}]
