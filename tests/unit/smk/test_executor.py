"""The executor of profiles/slurm: what it does before, at and after each job."""

import asyncio
from typing import Any
from unittest.mock import Mock, call

import pytest
from snakemake_executor_plugin_scalesweep import Executor
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from tests.fakes.executor import Stub

REPORTS = ("report_job_submission", "report_job_error", "report_job_success")
REFUSED = ["refuse", "release", "report_job_success"]  # what waits for it begins


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """What the executor asks, and reports to Snakemake."""
    hooks = Mock(LEFT="they are left")
    hooks.submit.return_value = 7, ""
    hooks.refuse.side_effect = lambda job, why: (True, f"{job.run_id}: not submitted: {why}")
    for name, stand_in in (
        ("rules", hooks), ("queue", hooks), ("leaving", False),
        *((name, getattr(hooks, name)) for name in REPORTS),
    ):  # fmt: skip
        monkeypatch.setattr(Executor, name, stand_in)
    return hooks


@pytest.fixture
def executor(hooks: Mock) -> Any:
    executor: Any = object.__new__(Executor)
    executor._live, executor.logger = set(), Mock()
    return executor


def done(hooks: Mock) -> list[str]:
    """The calls so far but for that of a job's command."""
    return [name for name, *_ in hooks.mock_calls if name != "command"]


@pytest.mark.parametrize(
    ("trouble", "calls", "line"),
    [
        ({}, ["submit", "report_job_submission"], ""),
        ({"before.side_effect": OSError(28, "no space left", "order.json")}, REFUSED,
         "a: not submitted: no space left: order.json"),
        ({"submit.return_value": (None, "Invalid node name specified")}, ["submit", *REFUSED],
         "a: not submitted: Invalid node name specified"),
    ],
)  # fmt: skip
def test_submissions(
    executor: Any, hooks: Mock, trouble: dict[str, Any], calls: list[str], line: str
) -> None:
    hooks.configure_mock(**trouble)
    executor.run_job(Stub("a"))
    assert done(hooks) == ["before", *calls]
    assert executor.logger.mock_calls == ([call.error(line)] if line else [])
    assert executor._live == (set() if line else {7})


def look(executor: Any, *jobs: str) -> list[str | None]:
    """Look at jobs; those that are still to be looked after."""

    async def check() -> list[str | None]:
        infos: list[Any] = [SubmittedJobInfo(Stub(), job) for job in jobs]  # type: ignore[arg-type]
        return [left.external_jobid async for left in executor.check_active_jobs(infos)]

    return asyncio.run(check())


@pytest.mark.parametrize(("over", "told"), [(True, "success"), (False, "error")])
def test_the_hooks_say_which_jobs_are_over_and_which_are_tried_again(
    executor: Any, hooks: Mock, over: bool, told: str
) -> None:
    hooks.ended.return_value = {7: (True, ""), 8: (over, "TIMEOUT after 60 s")}
    assert look(executor, "7", "8", "9") == ["9"]
    assert done(hooks) == [
        "ended", "release", "report_job_success", *["release"] * over, f"report_job_{told}",
    ]  # fmt: skip
    line = (call.error if over else call.warning)("TIMEOUT after 60 s")
    assert executor.logger.mock_calls == [line]
    # An error while looking is no end of the wait.
    hooks.ended.side_effect = OSError("disk full")
    assert look(executor, "13") == ["13"]
    assert executor.logger.mock_calls[1:] == [call.error("Slurm jobs: disk full")]


def test_jobs_are_cancelled_unless_they_are_left(executor: Any, hooks: Mock) -> None:
    executor._live = {7}
    executor.cancel_jobs([])
    executor.leaving = True
    executor.cancel_jobs([])
    assert hooks.mock_calls == [call.call_off([7], False), call.call_off([7], True)]
    line = "1 job(s) stay in Slurm's queue: they are left"
    assert executor.logger.mock_calls == [call.info(line)]
