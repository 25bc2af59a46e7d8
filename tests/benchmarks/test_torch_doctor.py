"""The doctor's programs under PyTorch: ranks that meet, one that nobody joins, and one alone."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.doctor import ranks
from scalesweep.compute.doctor.programs import Said, said_in
from scalesweep.core.paths import LAUNCHERS
from scalesweep.doctor.order import PROGRAMS
from tests.fakes.torch_python import TORCH, needs_torch

pytestmark = [pytest.mark.slow, needs_torch]
RANK = str(PROGRAMS / "rank.py")


def said(*words: str, **variables: str) -> list[dict[str, Any]]:
    """What programs say in an environment with these variables."""
    env = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=120)
    facts = said_in(done.stdout)
    assert facts, done.stderr
    return facts


def test_two_ranks_exchange_numbers_in_order() -> None:
    local = [sys.executable, str(LAUNCHERS / "local_ranks.py"), "2"]
    facts = said(*local, str(TORCH), RANK, "torch", "60", "/nowhere")
    assert not ranks.judge(Said(facts, ""))
    assert sorted(fact["torch"]["rank"] for fact in facts) == [0, 1]


def test_a_rank_that_does_not_come_is_named() -> None:
    place = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    launcher = [sys.executable, str(LAUNCHERS / "local_ranks.py"), "1", "env"]
    alone = [*launcher, *(f"{name}={value}" for name, value in place.items())]
    facts = said(*alone, str(TORCH), RANK, "torch", "2", "/nowhere")
    wrong = ranks.judge(Said(facts, ""))
    assert wrong.startswith("1 of 2 ranks started, PyTorch failed: rank 1 of 2 did not join rank 0")


def test_a_build_without_torch_distributed_fails(tmp_path: Path) -> None:
    """The program that asks for versions, under a Python whose PyTorch lacks it."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(
        "from types import SimpleNamespace as Names\n__version__ = '9.9'\n"
        "version, cuda = Names(cuda=None), Names(is_available=lambda: False)\n"
    )
    (tmp_path / "torch" / "distributed.py").write_text("def is_available(): return False\n")
    words = [sys.executable, str(PROGRAMS / "software.py"), "numpy", "torch"]
    (facts,) = said(*words, PYTHONPATH=str(tmp_path))
    assert facts["torch"] == "9.9" and not facts["wrong"]
    assert not any(facts["torch_build"][name] for name in ("distributed", "gloo", "nccl", "mpi"))
