"""Ranks that hang: the launcher's time limit ends the run, with the cause and everyone's stacks."""

import json
import sys

import pytest

from scalesweep.compute.launcher import launch
from tests.benchmarks.programs import GLOO, HELPER, ROOT, WORKFLOW, warm

RUN = ("--run", "{run_file}")


def spec(folder, behaviour, limit_s, argv, ranks=1, profile="none"):
    return {
        "run_id": "hanging-0123456789ab", "benchmark": "hanging", "version": 1, "repeat": 0,
        "params": {"ranks": ranks, "ranks_per_node": ranks, "behaviour": behaviour},
        "site": "here", "folder": str(folder), "data": None, "node_local": "/tmp",
        "argv": [*argv, *RUN], "env": GLOO | HELPER, "prologue": [], "time_limit_s": limit_s,
        "asked": None, "profile": profile,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.measured
def test_the_rank_that_the_others_wait_for_is_named(tmp_path):
    horovodrun = str(WORKFLOW / "launchers" / "horovodrun.py")
    argv = [sys.executable, horovodrun, "--gloo", "-np", "2", *warm("hanging.py")]
    for limit_s in (5, 10, 20, 40, 80):  # until the ranks come in time to where they stay
        folder = tmp_path / str(limit_s)
        assert launch(spec(folder, "hangs", limit_s, argv, ranks=2), ROOT) == 1
        work = folder / "attempt-1"
        ready = [float(path.read_text()) for path in work.glob("ready-*")]
        if len(ready) == 2 and max(ready) < 0.6 * limit_s:
            break
    failure = json.loads((folder / "failure.json").read_text())
    assert failure["cause"] == "HANG"
    detail, stacks = failure["detail"], failure["stacks"]
    assert detail.startswith("no rank made progress during the last ")
    assert "; rank 1 (host " in detail and "phase timed): benchmarks/hanging.py" in detail
    assert "; rank 0 (host " in detail and "phase timed): harness/ranks.py:" in detail
    assert " barrier < " in detail
    assert detail.endswith("; stacks of 2 of 2 ranks in attempt-1/stacks-*.json")
    assert [(each["ranks"], each["phase"]) for each in stacks] == [("1", "timed"), ("0", "timed")]
    assert " hangs < " in stacks[0]["where"]
    assert all(each["still_s"] > 0.25 * limit_s for each in stacks)
    for path in work.glob("stacks-*.json"):
        head = json.loads(path.read_text())
        assert path.name.startswith(f"stacks-rank{head['rank']}-{head['host']}-")
        assert ("mpi_ops.py" in path.read_text()) == (head["rank"] == 0)


def test_a_program_that_ends_well_leaves_no_stacks(tmp_path):
    limit_s = 1e15  # more than any clock can be set to
    argv = [sys.executable, str(ROOT / "tests" / "benchmarks" / "hanging.py")]
    assert launch(spec(tmp_path, "ends_well", limit_s, argv, profile="cprofile"), ROOT) == 1
    work = tmp_path / "attempt-1"
    assert "wrote no native.json" in json.loads((tmp_path / "failure.json").read_text())["detail"]
    assert (work / "during").read_text()
    assert not list(work.glob("stacks-*"))
    assert [path.name for path in work.glob("profile/*")] == ["rank0.prof"]
