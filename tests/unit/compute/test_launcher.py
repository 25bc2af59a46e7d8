"""The launcher: every way a program can end gives a record or a failure with its cause."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.rank_variables import LAUNCHERS, SRUN
from scalesweep.compute import program
from scalesweep.compute.job_spec import write_order
from scalesweep.compute.launcher import launch
from scalesweep.compute.program_output import BadResultError, check_finite
from scalesweep.core.record import read_record
from tests.conftest import ROOT
from tests.fakes.toy_run import TOY, spec


def failure(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "toy-r2-0123456789ab" / "failure.json").read_text())


def test_a_good_run_leaves_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # as Snakemake sets it in every shell job
    assert launch(spec(tmp_path), ROOT) == 0
    folder = tmp_path / "toy-r2-0123456789ab"
    record = read_record(folder / "record.json")
    assert record["source"] == "measured" and record["attempt"] == 1
    assert record["environment"]["variables"] == {"TOY_THREADS": "7"}
    assert record["environment"]["node"]["cores"] == os.cpu_count()
    assert record["wall_s"] > 0
    assert "toy says hello" in (folder / "attempt-1" / "stdout.log").read_text()
    assert not (folder / "failure.json").exists()


def test_programs_are_no_ranks_of_what_started_scalesweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name by which a rank of some launcher knows itself; Slurm's are those of the job."""
    of_ranks = {name for start in LAUNCHERS if start != SRUN for name in start[1:] if name}
    for name in of_ranks | {"MASTER_ADDR", "TORCHELASTIC_USE_AGENT_STORE", "RANK_OF_MINE"}:
        monkeypatch.setenv(name, "7")
    handed_on = program.environment(spec(tmp_path))
    assert not handed_on.keys() & (of_ranks | {"TORCHELASTIC_USE_AGENT_STORE"})
    assert handed_on["MASTER_ADDR"] == handed_on["RANK_OF_MINE"] == "7"
    # What the site says counts.
    assert program.environment(spec(tmp_path, env={"WORLD_SIZE": "2"}))["WORLD_SIZE"] == "2"


@pytest.mark.parametrize(
    ("behaviour", "cause", "detail"),
    [
        ("exit3", "NON_ZERO_EXIT", "exit code 3: the toy is broken"),
        ("missing_data", "MISSING_DATA", "no such data"),
        ("nan", "BAD_RESULT", "holds NaN"),
        ("silent", "BAD_RESULT", "wrote no native.json"),
        ("killed", "KILLED", "SIGSEGV"),
    ],
)
def test_failures_name_their_cause(tmp_path: Path, behaviour: str, cause: str, detail: str) -> None:
    assert launch(spec(tmp_path, behaviour), ROOT) == 1
    found = failure(tmp_path)
    assert found["cause"] == cause and detail in found["detail"]
    assert "toy says hello" in found["last_lines"]
    assert not (tmp_path / "toy-r2-0123456789ab" / "record.json").exists()


@pytest.mark.parametrize(
    ("metric", "detail"),
    [
        ('{"value": NaN, "unit": "s", "better": "lower", "scope": "total"}', "out of range"),
        ('{"value": "1", "unit": "s", "better": "lower", "scope": "total"}', "not a number"),
        ('{"value": -1, "unit": "s", "better": "lower", "scope": "total"}', "0 or more"),
        ('{"value": 1}', "lacks one of"),
    ],
)
def test_a_metric_that_is_none_is_a_bad_result(tmp_path: Path, metric: str, detail: str) -> None:
    native = '{"phases": {}, "metrics": {"x": %s}, "work": {}, "notes": {}, "resources": {}, '
    native += '"environment": {"ranks": [], "versions": {}, "variables": {}}}'
    argv = ["bash", "-c", f"printf '%s' '{native % metric}' > {{out}}/native.json"]
    assert launch(spec(tmp_path, argv=argv), ROOT) == 1
    found = failure(tmp_path)
    assert found["cause"] == "BAD_RESULT" and detail in found["detail"]


def test_success_after_failure_clears_the_failure_and_keeps_the_logs(tmp_path: Path) -> None:
    assert launch(spec(tmp_path, "exit3"), ROOT) == 1
    assert launch(spec(tmp_path), ROOT) == 0
    folder = tmp_path / "toy-r2-0123456789ab"
    assert read_record(folder / "record.json")["attempt"] == 2
    assert not (folder / "failure.json").exists()
    assert "the toy is broken" in (folder / "attempt-1" / "stderr.log").read_text()


@pytest.mark.slow
def test_the_time_limit_ends_every_process_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "GRACE_S", 0.5)
    # A program that starts another one and ignores the polite signal.
    script = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"p = subprocess.Popen(['sleep', '600']); open({str(tmp_path / 'pid')!r}, 'w')"
        ".write(str(p.pid)); time.sleep(600)"
    )
    argv = [sys.executable, "-c", script]
    assert launch(spec(tmp_path, argv=argv, time_limit_s=1.5), ROOT) == 1
    assert failure(tmp_path)["cause"] == "TIMEOUT"
    assert not _alive(int((tmp_path / "pid").read_text()))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # gone, or going while it is read
        return False


@pytest.mark.slow
def test_a_record_is_never_replaced(tmp_path: Path) -> None:
    assert launch(spec(tmp_path), ROOT) == 0
    folder = tmp_path / "toy-r2-0123456789ab"
    kept = (folder / "record.json").read_bytes()
    # Twice submitted, or requeued after its end.
    assert launch(spec(tmp_path), ROOT) == 0
    assert (folder / "record.json").read_bytes() == kept
    assert not (folder / "attempt-2").exists()


# As srun did: the program ends, and a zombie stays in its process group until its parent, which is
# in another one, looks after it.
ZOMBIE = """
import os, sys, time
group = os.getpgid(0)
ready, go = os.pipe()
if os.fork() == 0:
    os.setpgid(0, 0)
    if os.fork() == 0:
        os.setpgid(0, group)
        os.write(go, b".")
        os._exit(0)
    time.sleep(20)
    open(sys.argv[-1] + ".zombie-is-gone", "w").close()
    os._exit(0)
os.read(ready, 1)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.measured
@pytest.mark.slow
def test_the_clock_stops_at_the_programs_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    def slow(root: Path) -> dict[str, Any]:
        while not list(tmp_path.rglob("native.json")):  # what the program leaves last
            time.sleep(0.01)
        time.sleep(1.5)
        told.append(datetime.now(UTC))
        return {"commit": "c", "dirty": False}

    monkeypatch.setattr(program, "git_state", slow)
    argv = [sys.executable, "-c", ZOMBIE, str(TOY), "--run", "{run_file}"]
    assert launch(spec(tmp_path, argv=argv), ROOT) == 0
    assert not list(tmp_path.rglob("*.zombie-is-gone"))
    record = read_record(tmp_path / "toy-r2-0123456789ab" / "record.json")
    assert record["git"] == {"commit": "c", "dirty": False}
    started, ended = (datetime.fromisoformat(record[key]) for key in ("started", "ended"))
    assert ended < told[0]
    assert (ended - started).total_seconds() == pytest.approx(record["wall_s"], abs=0.002)


def test_a_program_that_cannot_start(tmp_path: Path) -> None:
    assert launch(spec(tmp_path, argv=["/no/such/program"]), ROOT) == 1
    assert "cannot start /no/such/program" in failure(tmp_path)["detail"]


def test_the_prologue_prepares_the_shell(tmp_path: Path) -> None:
    prologue = ["export TOY_FROM_PROLOGUE='a b'"]
    assert launch(spec(tmp_path, prologue=prologue), ROOT) == 0
    record = read_record(tmp_path / "toy-r2-0123456789ab" / "record.json")
    assert record["environment"]["variables"]["TOY_FROM_PROLOGUE"] == "a b"
    (tmp_path / "toy-r2-0123456789ab" / "record.json").unlink()
    assert launch(spec(tmp_path, prologue=["module load nothing"]), ROOT) == 1
    assert failure(tmp_path)["cause"] == "NON_ZERO_EXIT"


def start_launcher(tmp_path: Path, **changes: Any) -> "subprocess.Popen[bytes]":
    order = tmp_path / "order.json"
    write_order(order, spec(tmp_path, **changes))
    script = ROOT / "workflow" / "scripts" / "launch.py"
    return subprocess.Popen([sys.executable, script, "--order", order], stderr=subprocess.PIPE)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_stopped_leaves_no_process_and_no_record(
    tmp_path: Path, number: int
) -> None:
    pid_file = tmp_path / "pid"
    script = (
        f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    launcher = start_launcher(tmp_path, argv=[sys.executable, "-c", script])
    wait_for(pid_file)
    launcher.send_signal(number)
    assert launcher.wait(30) != 0
    pid = int(pid_file.read_text())
    deadline = time.monotonic() + 10
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(pid)
    folder = tmp_path / "toy-r2-0123456789ab"
    assert not (folder / "record.json").exists() and not (folder / "failure.json").exists()


@pytest.mark.parametrize("limit_s", [60.0, 0.5])
def test_a_run_whose_job_was_suspended_has_no_times(tmp_path: Path, limit_s: float) -> None:
    argv = ["bash", "-c", "sleep 0.2; kill -CONT $PPID; sleep 1"]
    order = spec(tmp_path, argv=argv, time_limit_s=limit_s)
    assert launch(order, ROOT) == 1
    assert failure(tmp_path)["cause"] == "SUSPENDED"


def test_one_run_is_never_measured_twice_at_once(tmp_path: Path) -> None:
    first = start_launcher(tmp_path, argv=["sleep", "600"])
    wait_for_dir = tmp_path / "toy-r2-0123456789ab" / "attempt-1"
    deadline = time.monotonic() + 30
    while not wait_for_dir.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    second = start_launcher(tmp_path)
    _, told = second.communicate(timeout=30)
    first.terminate()
    first.wait(30)
    assert second.returncode == 1
    assert b"error: toy-r2-0123456789ab: another process is measuring this run" in told


def test_check_finite_reads_what_numpy_writes(tmp_path: Path) -> None:
    path = tmp_path / "samples.npz"
    np.savez(path, a=np.arange(5.0), b=np.arange(3), c=np.zeros((2, 0)))
    check_finite(path)
    np.savez(path, a=np.array([1.0, np.inf]))
    with pytest.raises(BadResultError, match="a holds NaN or infinity"):
        check_finite(path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(BadResultError, match="cannot be read"):
        check_finite(path)


def test_the_launcher_imports_only_the_standard_library() -> None:
    code = "import sys, scalesweep.compute.launcher; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    outside = {name.split(".")[0] for name in found} - set(sys.stdlib_module_names)
    assert outside <= {"scalesweep", "__main__", "sitecustomize", "__mp_main__"}
    # Each costs milliseconds before every run, and few runs or none have need of it.
    assert not {
        "scalesweep.compute.external_program",
        "dataclasses",
        "inspect",
        "socket",
        "platform",
    } & set(found)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ranks_end_with_their_launcher(tmp_path: Path, number: int) -> None:
    horovodrun = str(ROOT / "workflow" / "launchers" / "horovodrun.py")
    script = f"echo $$ > {tmp_path}/pid-$HOROVOD_RANK; exec sleep 600"
    argv = [sys.executable, horovodrun, "--gloo", "-np", "2", "bash", "-c", script]
    launcher = start_launcher(tmp_path, argv=argv)
    files = [tmp_path / f"pid-{rank}" for rank in range(2)]
    for file in files:
        wait_for(file)
    pids = [int(file.read_text()) for file in files]
    launcher.send_signal(number)
    assert launcher.wait(60) != 0
    deadline = time.monotonic() + 30
    while any(map(_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_alive, pids))


def test_a_failing_rank_fails_the_run(tmp_path: Path) -> None:
    horovodrun = str(ROOT / "workflow" / "launchers" / "horovodrun.py")
    argv = [sys.executable, horovodrun, "--gloo", "-np", "2", "bash", "-c", "exit $HOROVOD_RANK"]
    assert launch(spec(tmp_path, argv=argv), ROOT) == 1
    assert failure(tmp_path)["cause"] == "NON_ZERO_EXIT"
    assert any(
        "Process 1 exit with status code 1" in line for line in failure(tmp_path)["last_lines"]
    )


def test_a_single_rank_is_told_in_its_words_though_srun_tells_its_end_first(tmp_path: Path) -> None:
    words = "srun: error: node1: task 0: Exited with exit code 1\\nno such size"
    order = spec(tmp_path, argv=["bash", "-c", f"printf '{words}\\n' >&2; exit 1"])
    order["params"] = {**order["params"], "ranks": 1}
    assert launch(order, ROOT) == 1
    assert failure(tmp_path)["detail"] == "exit code 1: no such size"


def test_a_rank_that_fails_silently_is_not_told_in_the_words_of_another(tmp_path: Path) -> None:
    """Rank 1 goes first and prints nothing; what rank 0 says then is of the end of its peer."""
    local = str(ROOT / "workflow" / "launchers" / "local_ranks.py")
    script = (
        "if [ $RANK = 1 ]; then exit 3; fi; "
        "trap 'echo Connection closed by peer >&2; exit 1' TERM; sleep 60 & wait"
    )
    assert launch(spec(tmp_path, argv=[sys.executable, local, "2", "bash", "-c", script]), ROOT)
    found = failure(tmp_path)
    assert (found["cause"], found["exit_code"]) == ("NON_ZERO_EXIT", 3)
    assert found["detail"].startswith("exit code 3 (rank 1 on "), found["detail"]
