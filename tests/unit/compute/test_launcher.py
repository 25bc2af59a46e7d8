"""The launcher: every way a program can end gives a record or a failure with its cause."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.rank_variables import LAUNCHERS as STARTERS
from harness.rank_variables import SRUN
from scalesweep.compute import job_spec, program
from scalesweep.compute import load as module
from scalesweep.compute.job_spec import Order, read_order, write_order
from scalesweep.compute.launcher import launch
from scalesweep.compute.load import busy_seconds, counts, load_between, own_seconds
from scalesweep.core.errors import UserError
from scalesweep.core.paths import LAUNCHERS
from scalesweep.core.record import read_record
from tests.conftest import ROOT
from tests.soak.launching import alive, order, start, wait_until

pytestmark = pytest.mark.slow
RUN = "toy-r2-0123456789ab"
HOROVODRUN = [sys.executable, str(LAUNCHERS / "horovodrun.py"), "--gloo", "-np", "2", "bash", "-c"]
LOCAL_RANKS = [sys.executable, str(LAUNCHERS / "local_ranks.py"), "2", "bash", "-c"]


def spec(folder: Path, behaviour: str = "good", **changes: Any) -> dict[str, Any]:
    """A run of two ranks below ``folder``; ``behaviour`` is what the program does."""
    params = {"ranks": 2, "ranks_per_node": 2, "size": 3, "behaviour": behaviour}
    argv = [sys.executable, str(ROOT / "tests" / "toy" / "main.py"), "--run", "{run_file}"]
    own = {"params": params, "argv": argv, "env": {"TOY_THREADS": "7"}}
    return order(folder / RUN, "", **own | changes)


def failure(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / RUN / "failure.json").read_text())


def test_a_record_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch(spec(tmp_path, "exit3"), ROOT) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # as Snakemake sets it in every shell job
    prologue = ["export TOY_FROM_PROLOGUE='a b'"]
    assert launch(spec(tmp_path, prologue=prologue), ROOT) == 0
    folder = tmp_path / RUN
    record = read_record(folder / "record.json")
    assert record["source"] == "measured" and record["attempt"] == 2 and record["wall_s"] > 0
    variables = {"TOY_THREADS": "7", "TOY_FROM_PROLOGUE": "a b"}
    assert record["environment"]["variables"] == variables
    assert record["environment"]["node"]["cores"] == os.cpu_count()
    assert "toy says hello" in (folder / "attempt-2" / "stdout.log").read_text()
    assert not (folder / "failure.json").exists()
    assert "the toy is broken" in (folder / "attempt-1" / "stderr.log").read_text()
    # Twice submitted, or requeued after its end.
    kept = (folder / "record.json").read_bytes()
    assert launch(spec(tmp_path), ROOT) == 0
    assert (folder / "record.json").read_bytes() == kept
    assert not (folder / "attempt-3").exists()


def test_programs_are_no_ranks_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name by which a rank of some launcher knows itself; Slurm's are those of the job."""
    of_ranks = {name for start in STARTERS if start != SRUN for name in start[1:] if name}
    for name in of_ranks | {"MASTER_ADDR", "TORCHELASTIC_USE_AGENT_STORE", "RANK_OF_MINE"}:
        monkeypatch.setenv(name, "7")
    handed_on = program.environment(spec(tmp_path))
    assert not handed_on.keys() & (of_ranks | {"TORCHELASTIC_USE_AGENT_STORE"})
    assert handed_on["MASTER_ADDR"] == handed_on["RANK_OF_MINE"] == "7"
    # What the site says counts.
    assert program.environment(spec(tmp_path, env={"WORLD_SIZE": "2"}))["WORLD_SIZE"] == "2"


SILENT = (  # rank 1 goes first and prints nothing; what rank 0 says then is of the end of its peer
    "if [ $RANK = 1 ]; then exit 3; fi; "
    "trap 'echo Connection closed by peer >&2; exit 1' TERM; sleep 60 & wait"
)
NATIVE = """
{"metrics": {"x": {"value": NaN, "unit": "s", "better": "lower", "scope": "total"}}, "phases": {},
 "work": {}, "notes": {}, "resources": {},
 "environment": {"ranks": [], "versions": {}, "variables": {}}}
"""
NO_SPACE = "cannot write /scratch/x: No space left on device"
NO_METRICS = {"metrics": [], "digest": "", "work": {}}


@pytest.mark.parametrize(
    ("changes", "cause", "detail"),
    [
        ({"behaviour": "exit3"}, "NON_ZERO_EXIT", "exit code 3: the toy is broken"),
        ({"behaviour": "missing_data"}, "MISSING_DATA", "no such data"),
        ({"behaviour": "nan"}, "BAD_RESULT", "holds NaN"),
        ({"behaviour": "silent"}, "BAD_RESULT", "wrote no native.json"),
        ({"behaviour": "killed"}, "KILLED", "SIGSEGV"),
        ({"behaviour": "unprofiled", "profile": "cprofile"}, "BAD_RESULT",
         "profile cprofile: the run wrote no profile"),
        ({"argv": ["rm", "-r", "{out}"]}, "BAD_RESULT", "wrote no native.json"),
        ({"argv": ["bash", "-c", "rm -r $(dirname {out}); exit 3"], "extract": NO_METRICS},
         "NON_ZERO_EXIT", "exit code 3"),
        # As Python, TensorFlow and the C library say it, with horovodrun's label.
        ({"argv": ["sh", "-c", f"echo '[1]<stderr>:{NO_SPACE}' >&2; exit 1"]}, "DISK_FULL",
         NO_SPACE),
        ({"argv": ["/no/such/program"]}, "NON_ZERO_EXIT", "cannot start /no/such/program"),
        ({"prologue": ["module load nothing"]}, "NON_ZERO_EXIT", "module: command not found"),
        ({"argv": ["bash", "-c", f"echo '{NATIVE}' > {{out}}/native.json"]}, "BAD_RESULT",
         "out of range"),
        # Rank 0 ends first: horovodrun waits 5 s for what has ended as it was told to end.
        ({"argv": [*HOROVODRUN, "sleep 0.$HOROVOD_RANK; exit $HOROVOD_RANK"]}, "NON_ZERO_EXIT",
         "exit code 1"),
        ({"argv": [*LOCAL_RANKS, SILENT]}, "NON_ZERO_EXIT", "exit code 3 (rank 1 on "),
    ],
)  # fmt: skip
def test_failures_name_their_cause(tmp_path: Path, changes: Any, cause: str, detail: str) -> None:
    assert launch(spec(tmp_path, **changes), ROOT) == 1
    found = failure(tmp_path)
    assert found["cause"] == cause and detail in found["detail"]
    assert not (tmp_path / RUN / "record.json").exists()


def test_a_time_limit_ends_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE_S", 0.1)
    # A program that starts another one and ignores the polite signal.
    script = f"trap '' TERM; sleep 600 & echo $! > {tmp_path}/pid; wait; wait"
    assert launch(spec(tmp_path, argv=["bash", "-c", script], time_limit_s=1.5), ROOT) == 1
    assert failure(tmp_path)["cause"] == "TIMEOUT"
    assert not alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_ranks_end_with_a_launcher_that_is_stopped(tmp_path: Path, number: int) -> None:
    script = f"echo $$ > {tmp_path}/pid-$HOROVOD_RANK; exec sleep 600"
    launcher = start(spec(tmp_path, argv=[*HOROVODRUN, script]))
    files = [tmp_path / f"pid-{rank}" for rank in range(2)]
    wait_until(lambda: all(file.exists() and file.read_text() for file in files), "two ranks")
    # One run is never measured twice at once.
    second = start(spec(tmp_path))
    said, _ = second.communicate(timeout=30)
    assert second.returncode == 1 and b": another process is measuring this run" in said
    launcher.send_signal(number)
    launcher.communicate(timeout=60)
    assert launcher.returncode
    pids = [int(file.read_text()) for file in files]
    wait_until(lambda: not any(map(alive, pids)), "the end of the ranks")
    assert not [*(tmp_path / RUN).glob("*.json")]


@pytest.mark.parametrize("limit_s", [60.0, 0.5])
def test_a_run_whose_job_was_suspended_has_no_times(tmp_path: Path, limit_s: float) -> None:
    argv = ["bash", "-c", "sleep 0.2; kill -CONT $PPID; sleep 1"]
    assert launch(spec(tmp_path, argv=argv, time_limit_s=limit_s), ROOT) == 1
    assert failure(tmp_path)["cause"] == "SUSPENDED"


def test_the_launcher_imports_only_the_standard_library() -> None:
    code = "import sys, scalesweep.compute.launcher; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    outside = {name.split(".")[0] for name in found} - set(sys.stdlib_module_names)
    assert outside <= {"scalesweep", "__main__", "sitecustomize", "__mp_main__"}
    # Each costs milliseconds before every run, and few runs or none have need of it.
    late = ("scalesweep.compute.external_program", "dataclasses", "inspect", "socket", "platform")
    assert not set(late) & set(found)


# What the launcher is told: order.json.


def test_an_order_that_lacks_something_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    other: Any = {"command": "make data"}
    write_order(path, other)
    with pytest.raises(UserError, match=r"cannot read the job specification \(it lacks 'argv'\)"):
        read_order(path)


def test_a_job_waits_for_its_own_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "order.json"
    known: Any = dict.fromkeys(Order.__required_keys__, "x")
    digest = write_order(path, {**known, "run_id": "new"})
    content = path.read_bytes()
    # What a network file system still shows, and then shows no more.
    write_order(path, {**known, "run_id": "old"})
    monkeypatch.setattr(job_spec, "_POLL_S", 0.01)
    threading.Timer(0.2, path.write_bytes, [content]).start()
    assert read_order(path, digest)["run_id"] == "new"
    path.unlink()
    threading.Timer(0.2, path.write_bytes, [content]).start()
    assert read_order(path, digest)["run_id"] == "new"
    # Another order was written meanwhile, for a job that was requeued.
    monkeypatch.setattr(job_spec, "CACHED_S", 0.1)
    assert read_order(path, "0" * 32)["run_id"] == "new"
    path.unlink()
    with pytest.raises(UserError, match="cannot read the job specification"):
        read_order(path, digest)


# What other processes take of the cores meanwhile: the kernel's counts.

TICK = os.sysconf("SC_CLK_TCK")


def test_busy_is_all_but_idle_and_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # user, nice, system, idle, iowait, irq, softirq, steal
    line = "1 2 4 1000 1000 8 16 32 0 0"
    (tmp_path / "stat").write_text(f"cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {line}\ncpu1 {line}\nintr 5\n")
    monkeypatch.setattr(module, "STAT", tmp_path / "stat")
    assert busy_seconds({0, 1}) == pytest.approx(2 * 63 / TICK)
    assert busy_seconds({1}) == pytest.approx(63 / TICK)
    with pytest.raises(LookupError, match="cpu7"):
        busy_seconds({0, 7})


def test_a_jobs_group_is_above_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, group = tmp_path / "cgroup", tmp_path / "system.slice/slurmstepd.scope/job_17"
    monkeypatch.setattr(module, "OWN_CGROUP", own)
    monkeypatch.setattr(module, "CGROUPS", tmp_path)
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    own.write_text("1:name=x:/y\n0::/system.slice/slurmstepd.scope/job_17/step_0/user/task_0\n")
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert own_seconds() == 2.5
    own.write_text("0::/user.slice\n")
    said = load_between(counts(), counts())
    assert said["others"] is None and "the job has no control group of its own" in said["missing"]


@pytest.mark.parametrize(
    ("after", "others", "missing"),
    [
        ((10.0, 112.0, 7.0), 6 / 20, ""),  # 12 s of the cores were busy, 6 of them ours
        ((10.0, 103.0, 7.0), 0.0, ""),  # counts are in steps
        ((0.4, 112.0, 7.0), None, "it ran for less than 0.5 s"),
    ],
)
def test_others_are_what_is_busy_and_not_ours(
    monkeypatch: pytest.MonkeyPatch,
    after: tuple[float, float, float],
    others: float | None,
    missing: str,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    said = load_between((0.0, 100.0, 1.0), after)
    assert said["others"] == (others if others is None else pytest.approx(others))
    assert said["missing"] == missing and said["cores"] == 2
