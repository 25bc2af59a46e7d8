"""The doctor's probe under PyTorch: ranks that meet, and one that nobody joins."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.paths import LAUNCHERS
from scalesweep.doctor.probe import PROBE, said_in
from tests.fakes.torch_python import TORCH, needs_torch

pytestmark = [pytest.mark.slow, needs_torch]
LOCAL = (sys.executable, str(LAUNCHERS / "local_ranks.py"))


def said(folder: Path, *words: str) -> list[dict[str, Any]]:
    """What the ranks say that these words start."""
    command = [*LOCAL, *words, str(TORCH), str(PROBE), str(folder), "torch"]
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=120
    )
    facts = said_in(done.stdout)
    assert facts, done.stderr
    return facts


def test_two_ranks_exchange_numbers(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("word")
    facts = said(tmp_path, "2")
    assert sorted(fact["rank"] for fact in facts) == [0, 1]
    assert [(f["exchange"]["size"], f["exchange"]["sum"], f["token"]) for f in facts] == [
        (2, 3.0, "word")
    ] * 2
