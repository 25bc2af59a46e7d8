"""The canary's allreduce through torch.distributed, with real ranks."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from scalesweep.core.paths import CANARY
from tests.fakes.torch_python import TORCH, needs_torch

pytestmark = [pytest.mark.slow, needs_torch]


def left(folder: Path, *ranks: dict[str, str]) -> list[dict[str, object]]:
    """What ranks with such variables leave of their allreduce."""
    words = [
        str(TORCH),
        str(CANARY),
        "--out",
        str(folder),
        "--seconds",
        "0.01",
        "--allreduce=torch",
    ]
    env = {"PATH": os.environ["PATH"], "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        subprocess.Popen(words, env=env | variables, stderr=subprocess.PIPE, text=True)
        for variables in ranks
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * len(ranks), errors
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*-allreduce.json"))]


def test_ranks_of_mpich_meet_through_the_folder_and_sum_up_an_array(tmp_path: Path) -> None:
    """MPICH and Intel MPI say no port: rank 0 leaves it in a file."""
    places = [
        {"PMI_RANK": rank, "PMI_SIZE": "2", "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": "2"}
        for rank in "01"
    ]
    rates = [part["allreduce"] for part in left(tmp_path / "out", *places)]
    assert len(rates) == 2 and all(isinstance(rate, float) and rate > 1e6 for rate in rates)
    assert json.loads((tmp_path / "out" / "meeting.json").read_text())["port"] > 0


def test_a_rank_alone_leaves_it_out_with_the_reason(tmp_path: Path) -> None:
    why = "torch.distributed does not know of other ranks"
    assert [part["left_out"] for part in left(tmp_path / "out", {})] == [{"allreduce": why}]
