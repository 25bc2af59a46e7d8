"""What other processes take of the cores while a run runs: the kernel's counts, and the record."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalesweep.compute import load as module
from scalesweep.compute.load import Load, busy_seconds, group_seconds, job_group

BUSY = "import time; end = time.process_time() + {}\nwhile time.process_time() < end: pass"
TICK = os.sysconf("SC_CLK_TCK")


def stat(path: Path, *ticks: int) -> Path:
    """A /proc/stat of two cores: user, nice, system, idle, iowait, irq, softirq, steal of both."""
    line = " ".join(map(str, ticks))
    path.write_text(f"cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {line} 0 0\ncpu1 {line} 0 0\nintr 5\n")
    return path


def test_busy_is_all_but_idle_and_waiting(tmp_path: Path) -> None:
    path = stat(tmp_path / "stat", 1, 2, 4, 1000, 1000, 8, 16, 32)
    assert busy_seconds([0, 1], path) == pytest.approx(2 * 63 / TICK)
    assert busy_seconds([1], path) == pytest.approx(63 / TICK)
    with pytest.raises(LookupError, match="cpu7"):
        busy_seconds([0, 7], path)


def test_a_jobs_control_group_is_found_above_its_step(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("1:name=x:/y\n0::/system.slice/slurmstepd.scope/job_17/step_0/user/task_0\n")
    group = job_group(own, tmp_path)
    assert group == tmp_path / "system.slice/slurmstepd.scope/job_17"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert group_seconds(group) == 2.5
    own.write_text("0::/user.slice\n")
    assert job_group(own, tmp_path) is None and job_group(tmp_path / "none") is None


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float, float]]:
    """What the clock, all cores and our own processes say, one look after the other."""
    found = [(0.0, 100.0, 1.0), (10.0, 112.0, 7.0)]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    looks = iter(found)

    monkeypatch.setattr(Load, "_look", lambda _: next(looks))
    return found


def test_others_are_what_is_busy_and_not_ours(counts: list[tuple[float, float, float]]) -> None:
    load = Load()
    load.ended()
    found = load.result()["load"]
    # 12 s of the cores were busy, 6 of them ours, of 10 s on two cores.
    assert found["others"] == pytest.approx(6 / 20)
    assert (found["cores"], found["missing"]) == (2, "")


def test_what_is_not_known_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    short = Load()
    short.ended()
    assert short.result()["load"] | {"cores": 0, "host": ""} == {
        "others": None, "cores": 0, "host": "", "missing": "it ran for less than 0.5 s",
    }  # fmt: skip
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setattr(module, "job_group", lambda: None)
    job = Load()
    job.ended()
    assert job.result()["load"]["others"] is None
    assert "no control group" in job.result()["load"]["missing"]


@pytest.mark.slow
def test_the_programs_own_work_is_not_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child and its child compute: their time is ours, whoever else is there."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    seen = []
    monkeypatch.setattr(module, "busy_seconds", lambda _: seen.append(0) or 0.0)
    load = Load()
    inner = BUSY.format(0.3)
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    subprocess.run([sys.executable, "-c", f"{code}\n{BUSY.format(0.3)}"], check=True)
    load.ended()
    before, after = load._looks
    assert not isinstance(before, str) and not isinstance(after, str)
    assert after[2] - before[2] >= 0.6 and len(seen) == 2
