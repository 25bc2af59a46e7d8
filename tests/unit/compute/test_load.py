"""What other processes take of the cores while a run runs: the kernel's counts, and the record."""

import os
from pathlib import Path

import pytest

from scalesweep.compute import load as module
from scalesweep.compute.load import busy_seconds, counts, load_between, own_seconds

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


def test_a_jobs_control_group_is_above_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
