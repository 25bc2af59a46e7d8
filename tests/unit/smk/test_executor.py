"""The executor of profiles/slurm: what it does before, at and after each job."""

import asyncio
from typing import Any

import pytest

from tests.fakes.executor import Hooks, Stub, info

REFUSED = ["refuse", "release", "report_job_success"]  # what waits for it begins


@pytest.mark.parametrize(
    ("run_id", "calls", "lines"),
    [
        ("a", ["submit", "report_job_submission"], []),
        ("full", REFUSED, ["full: not submitted: no space left: order.json"]),
        ("wrong", ["submit", *REFUSED], ["wrong: not submitted: Invalid node name specified"]),
    ],
)
def test_submissions(
    executor: Any, hooks: Hooks, run_id: str, calls: list[str], lines: list[str]
) -> None:
    executor.run_job(Stub(run_id))
    assert [call[0] for call in hooks.calls] == ["before", *calls]
    assert executor.logger.lines == lines and executor._live == ({7} if run_id == "a" else set())


def look(executor: Any, *jobs: str) -> list[str | None]:
    """Look at jobs; those that are still to be looked after."""

    async def check() -> list[str | None]:
        infos = [info(Stub(), job) for job in jobs]
        return [left.external_jobid async for left in executor.check_active_jobs(infos)]

    return asyncio.run(check())


@pytest.mark.parametrize(("over", "told"), [(True, "success"), (False, "error")])
def test_the_hooks_say_which_jobs_are_over_and_which_are_tried_again(
    executor: Any, hooks: Hooks, over: bool, told: str
) -> None:
    hooks.over = {7: (True, ""), 8: (over, "TIMEOUT after 60 s")}
    assert look(executor, "7", "8", "9") == ["9"]
    assert [call[0] for call in hooks.calls] == [
        "release", "report_job_success", *["release"] * over, f"report_job_{told}",
    ]  # fmt: skip
    assert executor.logger.lines == ["TIMEOUT after 60 s"]
    # An error while looking is no end of the wait.
    assert look(executor, "13") == ["13"] and executor.logger.lines[1:] == ["Slurm jobs: disk full"]


def test_jobs_are_cancelled_unless_they_are_left(executor: Any, hooks: Hooks) -> None:
    executor._live = {7}
    executor.cancel_jobs([])
    executor.leaving = True
    executor.cancel_jobs([])
    assert hooks.calls == [("call_off", [7], False), ("call_off", [7], True)]
    assert executor.logger.lines == ["1 job(s) stay in Slurm's queue: they are left"]
