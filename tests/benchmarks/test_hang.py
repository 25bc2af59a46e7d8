"""Ranks that hang: the launcher's time limit ends the run, with the cause and everyone's stacks."""

import json
import sys

import pytest

from scalesweep.compute.launcher import launch
from tests.benchmarks.programs import GLOO, HELPER, ROOT, WORKFLOW, helper

PROGRAM = helper("hanging.py", "--run", "{run_file}")


def spec(folder, behaviour, limit_s, ranks=1, argv=PROGRAM, **changes):
    return {
        "run_id": "hanging-0123456789ab", "benchmark": "hanging", "version": 1, "repeat": 0,
        "params": {"ranks": ranks, "ranks_per_node": ranks, "behaviour": behaviour},
        "site": "here", "folder": str(folder), "data": None, "node_local": "/tmp", "argv": argv,
        "env": HELPER, "prologue": [], "time_limit_s": limit_s, "asked": None, "profile": "none",
        **changes,
    }  # fmt: skip


def run_late(tmp_path, behaviour, limit_s, **words):
    """Run until the time limit; the failure, and the folder of the attempt.

    On a machine so busy that the ranks came late to where they stay, again with more time.
    """
    for number in range(4):
        folder, limit = tmp_path / str(number), limit_s * 2**number
        assert launch(spec(folder, behaviour, limit, **words), ROOT) == 1
        work = folder / "attempt-1"
        ready = [float(path.read_text()) for path in work.glob("ready-*")]
        if len(ready) == words.get("ranks", 1) and max(ready) < 0.7 * limit:
            break
    return json.loads((folder / "failure.json").read_text()), work


@pytest.mark.slow
@pytest.mark.measured
def test_the_rank_that_the_others_wait_for_is_named(tmp_path):
    horovodrun = str(WORKFLOW / "launchers" / "horovodrun.py")
    argv = [sys.executable, horovodrun, "--gloo", "-np", "2", *PROGRAM]
    env = GLOO | HELPER
    failure, work = run_late(tmp_path, "hangs_in_horovod", 18, ranks=2, argv=argv, env=env)
    assert failure["cause"] == "HANG"
    detail, stacks = failure["detail"], failure["stacks"]
    assert detail.startswith("no rank made progress during the last ")
    assert "; rank 1 (host " in detail and "phase timed): benchmarks/hanging.py" in detail
    assert "; rank 0 (host " in detail and "phase timed): harness/ranks.py:" in detail
    assert " barrier < " in detail
    assert detail.endswith("; stacks of 2 of 2 ranks in attempt-1/stacks-*.json")
    assert [(each["ranks"], each["phase"]) for each in stacks] == [("1", "timed"), ("0", "timed")]
    assert " sleeps < " in stacks[0]["where"] and all(each["still_s"] > 4 for each in stacks)
    for path in work.glob("stacks-*.json"):
        head = json.loads(path.read_text())
        assert path.name.startswith(f"stacks-rank{head['rank']}-{head['host']}-")
        assert ("mpi_ops.py" in path.read_text()) == (head["rank"] == 0)


@pytest.mark.parametrize("limit_s", [3600, 1e15])  # more than any clock can be set to
def test_a_program_that_ends_well_leaves_no_stacks(tmp_path, limit_s):
    assert launch(spec(tmp_path, "ends_well", limit_s, profile="cprofile"), ROOT) == 1
    work = tmp_path / "attempt-1"
    assert "wrote no native.json" in json.loads((tmp_path / "failure.json").read_text())["detail"]
    assert (work / "during").read_text()
    assert not list(work.glob("stacks-*"))
    assert [path.name for path in work.glob("profile/*")] == ["rank0.prof"]
