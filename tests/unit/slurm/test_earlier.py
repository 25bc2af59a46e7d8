"""Jobs of earlier calls are waited for, left at Ctrl-C, or cancelled."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from scalesweep.slurm import earlier
from scalesweep.slurm.commands import LiveJob
from scalesweep.slurm.job_identity import job_name, staging_comment

RUNS = Path("results/runs/site")


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[LiveJob]:
    ours = job_name(RUNS)
    jobs = [
        LiveJob(7, "RUNNING", ours, "a"),
        LiveJob(8, "PENDING", ours, "b"),
        LiveJob(9, "PENDING", ours, staging_comment(Path("data/8"))),
        LiveJob(10, "PENDING", "scalesweep_else", "a"),
    ]
    monkeypatch.setattr(earlier, "live_jobs", lambda patience_s: jobs)
    return jobs


def on_sleep(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[float]:
    pauses: list[float] = []
    # Threads of other tests may sleep too.
    sleep = SimpleNamespace(sleep=lambda s: (pauses.append(s), act())[0])
    monkeypatch.setattr(earlier, "time", sleep)
    return pauses


def test_they_are_waited_for_with_one_line(
    queue: list[LiveJob], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = on_sleep(monkeypatch, lambda: queue.pop(0))
    earlier.await_jobs(RUNS)
    assert pauses == [2, 4]
    said = "waiting for 2 jobs of an earlier call in Slurm's queue\n"
    assert capsys.readouterr().err == said
    earlier.await_jobs(RUNS)
    assert capsys.readouterr().err == ""


def test_ctrl_c_leaves_them(queue: list[LiveJob], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    on_sleep(monkeypatch, interrupt)
    with pytest.raises(SystemExit, match=r"2 jobs of an earlier call may be in .* `scalesweep"):
        earlier.await_jobs(RUNS)


def test_they_are_cancelled(queue: list[LiveJob], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(earlier, "ask", lambda *words: asked.append(words))
    assert earlier.cancel_jobs(RUNS) == 2 and asked == [("scancel", "--quiet", "7", "8")]
    queue.clear()
    assert earlier.cancel_jobs(RUNS) == 0 and len(asked) == 1
