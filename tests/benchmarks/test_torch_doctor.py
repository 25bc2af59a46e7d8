"""The doctor's probe under PyTorch: two ranks that meet."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalesweep.core.paths import LAUNCHERS
from scalesweep.doctor.probe import PROBE, said_in
from tests.fakes.torch_python import TORCH, needs_torch


@pytest.mark.slow
@needs_torch
def test_two_ranks_exchange_numbers(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("word")
    ranks = [sys.executable, LAUNCHERS / "local_ranks.py", "2"]
    command = [*map(str, (*ranks, TORCH, PROBE, tmp_path)), "torch"]
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120)
    facts = said_in(done.stdout)
    assert sorted(fact["rank"] for fact in facts) == [0, 1]
    found = [(each["exchange"]["size"], each["exchange"]["sum"], each["token"]) for each in facts]
    assert found == [(2, 3.0, "word")] * 2
