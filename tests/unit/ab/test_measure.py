"""Jobs of Slurm for pairs: one for each point, cancelled whatever happens; what it costs."""

import contextlib
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalesweep.ab import measure
from scalesweep.ab.measure import JOB_NAME, cancel_left, job_request, measure_in_slurm
from scalesweep.ab.pairs import Ordered
from scalesweep.ab.session import Cost, _end_in_order
from scalesweep.compute.job_spec import ORDER
from scalesweep.config.campaign import Campaign
from scalesweep.jobs.job_requests import Request
from scalesweep.slurm import commands
from scalesweep.slurm.commands import LiveJob, leave_job
from scalesweep.slurm.job_shape import Shape

Asked = list[tuple[str, ...]]
REQUEST = Request(Shape(2, 4, 2, 1, 6), 300.0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What Slurm is asked; jobs get the numbers 1, 2, ... and are over at once."""
    found: Asked = []

    def ask(*words: str, patience_s: float = 0.0) -> str:
        found.append(words)
        return f"{sum(one[0] == 'sbatch' for one in found)};cluster\n"

    monkeypatch.setattr(commands, "ask", ask)
    monkeypatch.setattr(commands, "queue_states", dict)
    monkeypatch.setattr(measure, "_LATE_S", 0.0)
    return found


def ordered(folder: Path) -> list[Ordered]:
    names = (("p1", "base/a"), ("p2", "base/b"), ("p1", "new/a"))
    return [Ordered(folder / name / ORDER, "d", group) for group, name in names]


def campaign_of(most: float = 600, canary: bool = False) -> Campaign:
    slurm = SimpleNamespace(max_minutes=most, startup_minutes=1)
    return cast(Campaign, SimpleNamespace(site=SimpleNamespace(slurm=slurm), canary=canary))


def test_a_point_is_a_job(tmp_path: Path, asked: Asked) -> None:
    requests = dict.fromkeys(("p1", "p2"), REQUEST)
    measure_in_slurm(tmp_path, ordered(tmp_path), requests, lambda _: None)
    first, _, last = asked
    assert first[:4] == ("sbatch", "--parsable", "--nodes=2", "--ntasks=4")
    assert f"--job-name={JOB_NAME}" in first and f"--comment={tmp_path.resolve()}" in first
    # One after the other, until one fails.
    runs = [re.findall(r"--order \S+/(\w+/\w+)/order.json --digest d >", of[-1]) for of in asked]
    assert runs[:2] == [["base/a", "new/a"], ["base/b"]] and first[-1].count(" && ") == 1
    assert last == ("scancel", "--quiet", "1", "2")


def test_a_call_that_ends_takes_its_jobs_along(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended() -> Any:
        raise SystemExit(130)

    monkeypatch.setattr(commands, "queue_states", ended)
    requests = dict.fromkeys(("p1", "p2"), REQUEST)
    with pytest.raises(SystemExit):
        measure_in_slurm(tmp_path, ordered(tmp_path), requests, lambda _: None)
    assert asked[-1] == ("scancel", "--quiet", "1", "2")


def test_what_a_killed_call_left_in_the_queue_is_cancelled(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, others = str(tmp_path.resolve()), (("scalesweep_x", "rule_run"), (JOB_NAME, "/else"))
    live = [LiveJob(n, "RUNNING", *of) for n, of in enumerate(((JOB_NAME, mine), *others), 7)]
    monkeypatch.setattr(commands, "live_jobs", lambda patience_s: live)
    cancel_left(tmp_path)
    assert asked == [("scancel", "--quiet", "7")]


def test_a_job_has_the_limit_of_all_its_runs() -> None:
    def minutes(runs: int, *words: Any) -> int:
        return job_request(campaign_of(*words), {"ranks": 1}, REQUEST, runs).shape.minutes

    assert minutes(8, 600) == 41
    assert minutes(8, 600, True) == 43  # ten seconds each
    assert minutes(8, 20) == 21 and minutes(8, 2) == 6  # one run at least


def test_a_job_that_calls_snakemake_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_MEM_PER_NODE", "SLURM_CONF"):
        monkeypatch.setenv(name, "1")
    leave_job()
    assert [name for name in os.environ if name.startswith("SLURM_")] == ["SLURM_CONF"]


def test_costs_in_words() -> None:
    cost = Cost()
    text: Callable[[bool], str] = lambda in_slurm: cost.text(4, in_slurm)  # noqa: E731
    assert text(False) == "nothing: all of it has been measured"
    cost.add(12, 30.0, 2, 0.5)
    assert text(False) == "12 runs, about 6 min 00 s, 0.8 core-hours"
    assert text(True).endswith("; 0.2 node-hours expected, 0.5 at most")
    cost.add(2, None, 1, 0.1)
    assert text(True).startswith("14 runs, an unknown time")
    assert text(True).endswith("; unknown node-hours expected, 0.6 at most")


def test_an_interrupt_is_one_line_and_removes_worktrees(capsys: pytest.CaptureFixture[str]) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    removed = []
    try:
        _end_in_order()
        with pytest.raises(SystemExit) as ended, contextlib.ExitStack() as stack:
            stack.callback(removed.append, "worktrees")
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (ended.value.code, removed) == (130, ["worktrees"])
    assert capsys.readouterr().err == "error: interrupted: the next call goes on from here\n"
