"""A job of several runs: whatever becomes of one, the others are measured."""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.job_spec import ORDER, Order, write_order
from scalesweep.compute.left_out import leave_out
from scalesweep.compute.pack import (
    Pack,
    begun,
    ended_in,
    is_over,
    nodes_of,
    pack_file,
    read_pack,
    was_begun,
    write_pack,
)
from scalesweep.compute.pack_launcher import run_pack
from scalesweep.core.record import read_failure

JOB = 41
HOSTS = ["a", "b", "c", "d"]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLURM_JOB_ID", str(JOB))
    return tmp_path / "runs"


def made(runs: Path, *run_ids: str, needs_s: float = 5.0, given_s: float = 100.0) -> Path:
    """A pack of these runs, which have orders."""
    for run_id in run_ids:
        order: Any = dict.fromkeys(Order.__required_keys__, "") | {"asked": {"limit_s": needs_s}}
        write_order(runs / run_id / ORDER, order)
    pack: Pack = {
        "runs": [{"run_id": run_id, "order": "d", "needs_s": needs_s} for run_id in run_ids],
        "given_s": given_s,
        "spare_s": 0.3,
    }
    return pack_file(runs, write_pack(runs, pack))


def wait_for(*files: Path) -> None:
    """Wait until files are there, for a minute at most."""
    last = time.monotonic() + 60
    while not all(file.exists() for file in files) and time.monotonic() < last:
        time.sleep(0.02)


def launch(order: Path, digest: str, hosts: Sequence[str]) -> int:
    """What the launcher may come to, by the name of the run's folder."""
    folder, kind = order.parent, order.parent.name.partition("-")[0]
    print(f"launching {folder.name} {digest}")
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "stuck":
        time.sleep(3600)
    if kind == "wrong":
        raise ValueError("a mistake of ours")
    if kind == "taken":
        return 1
    if kind == "failed":
        failure = {"cause": "NON_ZERO_EXIT", "detail": "exit code 3", "job_id": JOB}
        (folder / "failure.json").write_text(json.dumps(failure))
        return 1
    record = {"resources": {"slurm": {"job_id": JOB}}}
    (folder / "record.json").write_text(json.dumps(record))
    if kind == "late":  # killed with its record written
        os.kill(os.getpid(), signal.SIGKILL)
    return 0


@pytest.mark.slow
def test_each_run_has_its_own_end(runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ids = ("good-1", "failed", "killed", "wrong", "stuck", "late", "taken", "good-2")
    path = made(runs, *ids, needs_s=0.5)
    newer = {"jobs": [{"job_id": JOB}, {"job_id": 50}]}
    (runs / "taken" / "job.json").write_text(json.dumps(newer))
    with capfd.disabled():  # a run's log is what its process writes to descriptors
        run_pack(path, launch)
    assert begun(runs, path.stem) == list(ids)
    for run_id in ("good-1", "good-2", "late"):
        assert is_over(runs / run_id, JOB) and not (runs / run_id / "failure.json").exists()
        assert (runs / run_id / "launcher.log").read_text() == f"launching {run_id} d\n"
        assert not is_over(runs / run_id, JOB + 1)
    # The launcher has the last word; where it left none, this one says what it saw.
    failures = {run_id: read_failure(runs / run_id) or {} for run_id in ids}
    assert failures["failed"]["cause"] == "NON_ZERO_EXIT"
    told = {run_id: failures[run_id].get("detail") for run_id in ("killed", "wrong", "stuck")}
    assert told == {
        "killed": "the launcher was ended by SIGKILL before it wrote a result",
        "wrong": "the launcher ended with exit code 1 before it wrote a result",
        "stuck": "the launcher was not over after 0.8 s and was killed before it wrote a result",
    }
    assert failures["stuck"]["asked"] == {"limit_s": 0.5} and failures["stuck"]["job_id"] == JOB
    assert "ValueError: a mistake of ours" in failures["wrong"]["last_lines"][-1]
    assert all(ended_in(runs / run_id, JOB) for run_id in told)
    assert failures["taken"] == {}  # it is another job's by now

    # Requeued, the job does what it has not ended: a launch finds a record by itself.
    (runs / "failed" / "launcher.log").unlink()
    (runs / "good-2" / "launcher.log").unlink()
    with capfd.disabled():
        run_pack(path, launch)
    assert not (runs / "failed" / "launcher.log").exists()
    assert (runs / "good-2" / "launcher.log").exists()


def test_a_run_begins_only_with_its_whole_limit_left(runs: Path) -> None:
    path = made(runs, "failed", "good-1", "good-2", needs_s=5.0, given_s=5.1)
    assert was_begun(runs, path.stem, "failed") and not was_begun(runs, path.stem, "good-1")
    run_pack(path, launch)
    # The first begins in any case, so that each job ends with one run less.
    assert begun(runs, path.stem) == ["failed"]
    assert was_begun(runs, path.stem, "failed") and not was_begun(runs, path.stem, "good-1")


@pytest.mark.measured
@pytest.mark.slow
def test_runs_on_nodes_of_their_own_begin_in_order_and_share_none(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A launcher that hangs on one node keeps neither the others waiting nor the node for ever."""
    monkeypatch.setattr(sys.modules["scalesweep.compute.pack_launcher"], "_hosts", lambda: HOSTS)
    sizes = {"stuck": 1, "one-1": 1, "two-1": 2, "one-2": 1, "killed": 1, "two-2": 2, "four": 4}
    path = made(runs, *sizes, needs_s=2.0)
    pack: Any = json.loads(path.read_text())
    for run in pack["runs"]:
        run["nodes"] = sizes[run["run_id"]]
    path = pack_file(runs, write_pack(runs, pack))

    def placed(order: Path, digest: str, hosts: Sequence[str]) -> int:
        began = time.time()
        (order.parent / "began").touch()
        # Begun beside it, or only once it is over?
        beside = ["one-1", "two-1"] if order.parent.name == "stuck" else []
        wait_for(*(runs / run_id / "began" for run_id in beside))
        time.sleep(0.2)
        (order.parent / "when.json").write_text(json.dumps([began, time.time(), *hosts]))
        return launch(order, digest, hosts)

    with capfd.disabled():
        run_pack(path, placed)
    assert begun(runs, path.stem) == list(sizes)
    when = {i: json.loads((runs / i / "when.json").read_text()) for i in sizes}
    for run_id, (began, ended, *hosts) in when.items():
        assert len(set(hosts)) == sizes[run_id] and set(hosts) <= set(HOSTS)
        assert nodes_of(runs, path.stem, run_id) == ",".join(hosts)
        for other, (since, until, *others) in when.items():
            if other != run_id and not set(hosts).isdisjoint(others):
                assert until <= began or ended <= since, (run_id, other)
    assert when["one-1"][0] < when["stuck"][1] and when["two-1"][0] < when["stuck"][1]
    # While one hangs the others go on; what needs its node waits until it has been killed.
    killed = (runs / "stuck" / "failure.json").stat().st_mtime
    assert when["two-2"][0] < killed <= when["four"][0]
    causes = {i: (read_failure(runs / i) or {}).get("cause") for i in sizes}
    assert {i for i, cause in causes.items() if cause} == {"stuck", "killed"}


def test_called_off_or_unreadable(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(runs, "good-1", "good-2")
    leave_out(runs, ["good-1", "good-2"])
    run_pack(path, launch)
    assert begun(runs, path.stem) == []
    path.write_text(path.read_text().replace("good-1", "good-3"))
    assert read_pack(runs, path.stem) is None and was_begun(runs, path.stem, "good-2")
    monkeypatch.setattr(sys.modules["scalesweep.compute.pack_launcher"], "CACHED_S", 0.1)
    with pytest.raises(Exception, match="cannot read the runs of this job"):
        run_pack(path, launch)


@pytest.mark.slow
def test_a_group_of_which_a_run_has_failed_is_left_out_in_a_job_or_not(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID")
    ids = ("base/good-1", "base/stuck", "new/stuck", "new/late", "new/good-2")
    path = made(runs, *ids, needs_s=0.5)
    pack: Any = json.loads(path.read_text())
    for run, group in zip(pack["runs"], "abacc", strict=True):
        run["group"] = group
    path = pack_file(runs, write_pack(runs, pack | {"given_s": None, "spare_s": 0.2}))
    pack["runs"][2]["group"] = "b"
    with capfd.disabled():
        run_pack(path, launch)
    # A launcher that was killed with its record written has not failed.
    assert begun(runs, path.stem) == list(ids)
    assert (runs / "new/good-2" / "record.json").exists()
    for side in ("base", "new"):
        failure = read_failure(runs / side / "stuck") or {}
        assert (failure["cause"], failure["run_id"]) == ("KILLED", "stuck")
        assert "was not over after 0.7 s" in failure["detail"] and "job_id" not in failure
    path = pack_file(runs, write_pack(runs, pack))
    with capfd.disabled():
        run_pack(path, launch)
    assert begun(runs, path.stem) == [run_id for run_id in ids if run_id != "new/stuck"]


def test_called_off_it_ends_what_it_has_begun(runs: Path) -> None:
    path = made(runs, "stuck", "good-1", needs_s=3600.0)
    if (pid := os.fork()) == 0:
        with contextlib.suppress(SystemExit):
            run_pack(path, launch)
            os._exit(0)
        os._exit(1)
    since = time.monotonic()
    while not (runs / "stuck" / "launcher.log").exists() and time.monotonic() - since < 20:
        time.sleep(0.01)
    os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert begun(runs, path.stem) == ["stuck"] and not (runs / "stuck" / "failure.json").exists()
