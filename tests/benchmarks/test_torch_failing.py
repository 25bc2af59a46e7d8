"""Runs of torch_training in which one rank fails: the launcher names it, and what it failed of."""

import json
import os
import sys
from pathlib import Path

import pytest

from scalesweep.compute.launcher import launch
from tests.benchmarks.programs import ROOT, WORKFLOW
from tests.benchmarks.test_hang import spec
from tests.benchmarks.torch_programs import DEFAULTS, SMALL
from tests.fakes.torch_python import TORCH, needs_torch

pytestmark = [pytest.mark.slow, needs_torch]

PIPELINE = {"data_parallel": "none", "pp": 2, "pp_schedule": "1f1b", "micro_batches": 4}
LAYOUTS = {"ddp": {}, "pipeline": PIPELINE}


def run(folder, how, layout, limit_s):
    """Train with two ranks of which one fails; what failure.json says."""
    launcher, program = WORKFLOW / "launchers" / "local_ranks.py", Path(__file__).parent
    argv = [sys.executable, launcher, "2", TORCH, program / "torch_failing.py", how]
    params = {**DEFAULTS, **SMALL, "batches": 2000, "ranks": 2, **LAYOUTS[layout]}
    order = spec(folder, how, limit_s, ranks=2, argv=[*map(str, argv), "--run", "{run_file}"])
    order["benchmark"] = "torch_training"
    order["params"] = params | {"ranks_per_node": 2}
    assert launch(order, ROOT) == 1
    return json.loads((folder / "failure.json").read_text())


def left(folder):
    """The processes that still know a run's folder."""
    mark = os.fsencode(folder)
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in content(path)]


def content(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


@pytest.mark.measured
def test_the_rank_that_the_others_wait_for_is_named(tmp_path):
    for number in range(4):  # on a machine so busy that the ranks came late, with more time
        limit_s = 12 * 2**number
        failure = run(tmp_path / str(number), "loops", "pipeline", limit_s)
        assert not left(tmp_path)
        if failure["cause"] == "HANG" and all(e["phase"] != "import" for e in failure["stacks"]):
            break
    assert failure["cause"] == "HANG", failure
    where = {each["ranks"]: each["where"] for each in failure["stacks"]}
    assert sorted(where) == ["0", "1"], failure
    assert " loops < benchmarks/torch_failing.py:" in where["1"]
    assert "while 1 rank waits in torch_training/pipeline.py:" in failure["detail"]
    assert "; rank 1 (host " in failure["detail"]


@pytest.mark.parametrize(
    ("how", "layout", "cause", "detail", "first"),
    [
        ("asserts", "pipeline", "NON_ZERO_EXIT", "exit code 1: AssertionError: the loss is", "1"),
        ("leaves", "ddp", "NON_ZERO_EXIT", "rank 1 had ended with exit code 0 before: Run", None),
    ],
)
def test_the_rank_that_failed_first_is_named(tmp_path, how, layout, cause, detail, first):
    failure = run(tmp_path, how, layout, 300)
    assert (failure["cause"], failure.get("first_ranks")) == (cause, first), failure
    assert detail in failure["detail"] and not left(tmp_path)
