"""The executor of profiles/slurm: what it does before, at and after each job."""

import asyncio
import threading
import time
from typing import Any

import pytest

from tests.fakes.executor import Hooks, Stub, info

AWAY = "sbatch: error: Batch job submission failed: Unable to contact slurm controller"
INVALID = "sbatch: a word of the site\nsbatch: error: Invalid node name specified"
FULL = "sbatch: error: QOSLimit\nsbatch: error: Batch job submission failed: Job violates policy"
TAKEN = ["report_job_submission"]
REFUSED = ["refuse", "release", "report_job_success"]  # what waits for it begins


@pytest.mark.parametrize(
    ("run_id", "said", "in_queue", "calls", "pauses"),
    [
        ("a", [], None, ["submit", *TAKEN], []),
        ("full", [], None, REFUSED, []),
        ("a", [INVALID], None, ["submit", *REFUSED], []),
        ("a", [AWAY] * 3, None, [*["submit", "queued"] * 3, "submit", *TAKEN], [1, 2, 4]),
        # Slurm has taken it without saying so.
        ("a", [AWAY], 9, ["submit", "queued", *TAKEN], [1]),
        ("a", [FULL] * 2, None, [*["submit", "queued"] * 2, "submit", *TAKEN], [1, 2]),
    ],
)
def test_submissions(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch,
    run_id: str, said: list[str], in_queue: int | None, calls: list[str], pauses: list[float],
) -> None:  # fmt: skip
    waits: list[float] = []
    hooks.answers, hooks.in_queue = list(said), in_queue
    monkeypatch.setattr(executor._ending, "wait", waits.append)
    executor._submit(Stub(run_id))
    assert [call[0] for call in hooks.calls] == ["before", *calls] and waits == pauses
    lines = executor.logger.lines
    if calls[-1] == "report_job_success":
        why = "no space left: order.json" if run_id == "full" else "Invalid node name specified"
        assert lines == [f"{run_id}: not submitted: {why}"]
    else:
        assert list(executor._live) == [in_queue or 7]
        if FULL in said:  # it is said once
            why = "Batch job submission failed: Job violates policy"
            assert lines == [f"sbatch: {why}; submitting again until Slurm takes it"]


def look(executor: Any, *jobs: str) -> list[str | None]:
    """Look at jobs; those that are still to be looked after."""

    async def check() -> list[str | None]:
        infos = [info(Stub(), job) for job in jobs]
        return [left.external_jobid async for left in executor.check_active_jobs(infos)]

    return asyncio.run(check())


@pytest.mark.parametrize(("over", "told"), [(True, "success"), (False, "error")])
def test_the_hooks_say_which_jobs_are_over_and_which_are_tried_again(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch, over: bool, told: str
) -> None:
    hooks.over, hooks.verdict = {7: True, 8: False}, over
    assert look(executor, "7", "8", "9") == ["9"]
    assert [call[0] for call in hooks.calls] == [
        "release", "report_job_success", "judge", *["release"] * over, f"report_job_{told}",
    ]  # fmt: skip
    assert executor.logger.lines == ["TIMEOUT after 60 s"]
    assert executor.next_seconds_between_status_checks == 5
    # While nothing ends the queue is left alone for longer: of a wait, a tenth is idle.
    now = time.monotonic()
    for quiet_s, pause_s in ((0, 5), (40, 5), (80, 8), (250, 25), (900, 30)):
        monkeypatch.setattr(time, "monotonic", lambda quiet_s=quiet_s: now + quiet_s)
        executor._quiet_since = now
        assert look(executor, "9") == ["9"]
        assert executor.next_seconds_between_status_checks == pytest.approx(pause_s)
    # An error while looking is no end of the wait.
    assert look(executor, "13") == ["13"] and executor.logger.lines[1:] == ["Slurm jobs: disk full"]


def test_jobs_are_cancelled_unless_they_are_left(executor: Any, hooks: Hooks) -> None:
    executor._live = {7: info(Stub())}
    executor.cancel_jobs([])
    assert hooks.calls == [("call_off", [7], False), ("call_off", [], False)]
    hooks.calls.clear()
    executor._ending.clear()
    executor.leaving.set()
    executor.cancel_jobs([])
    assert hooks.calls == [("call_off", [7], True), ("call_off", [], True)]
    assert executor.logger.lines == ["1 job(s) stay in Slurm's queue: they are left"]
    executor._submit(Stub())  # what waits for its turn is not submitted
    assert len(hooks.calls) == 2


def test_a_job_that_is_being_submitted_is_cancelled_too(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while jobs are submitted: none stays in the queue, none counts as failed."""
    begun = threading.Event()

    def submit(job: Any, script: str) -> tuple[int, str]:
        begun.set()
        assert executor._ending.wait(60)
        time.sleep(0.1)
        return 9, ""

    monkeypatch.setattr(hooks, "submit", submit)
    executor._live = {7: info(Stub())}
    executor.run_job(Stub("late"))
    assert begun.wait(60)
    executor.cancel_jobs([])
    cancelled = [call[1] for call in hooks.calls if call[0] == "call_off"]
    assert cancelled == [[7], [9]]


@pytest.mark.parametrize("slurm_has_it", [True, False, None])
def test_an_interrupt_that_ends_sbatch_is_no_failure(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch, slurm_has_it: bool | None
) -> None:
    """Ctrl-C ends every process of the terminal, maybe before the call knows of it."""
    hooks.in_queue, hooks.away = 9 if slurm_has_it else None, slurm_has_it is None
    hooks.answers = [""]
    monkeypatch.setattr("snakemake_executor_plugin_scalesweep._TICK_S", 60.0)
    threading.Timer(0.05, executor._ending.set).start()
    executor._submit(Stub())
    assert list(executor._live) == ([9] if slurm_has_it else [])
    assert {"refuse", "report_job_error"}.isdisjoint(call[0] for call in hooks.calls)
