"""The executor of profiles/slurm: what it does before, at and after each job."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_slurm as slurm
from snakemake_executor_plugin_scalesweep import Executor, ExecutorSettings, common_settings
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from scalesweep.slurm.commands import LiveJob
from scalesweep.slurm.job_watch import JobWatch
from tests.conftest import ROOT
from tests.fakes.executor import Hooks, Stub, info


def test_snakemake_finds_it_by_its_name_with_the_settings_of_slurms() -> None:
    plugin = ExecutorPluginRegistry().get_plugin("scalesweep")
    assert plugin.executor is Executor and issubclass(Executor, slurm.Executor)
    assert ExecutorSettings is slurm.ExecutorSettings and common_settings is slurm.common_settings
    keys = (ROOT / "profiles" / "slurm" / "config.yaml").read_text()
    assert "executor: scalesweep" in keys and "\nslurm-" not in keys


def test_what_it_overrides_is_there() -> None:
    for name in (
        *("run_job", "report_job_submission", "print_job_error", "sleep", "check_active_jobs"),
        *("cancel_jobs", "shutdown", "format_job_exec", "get_account_arg", "get_partition_arg"),
        "_report_job_error_threadsafe",
    ):
        assert name in vars(Executor) and callable(getattr(slurm.Executor, name))
    # All jobs have the name of the session, and this is what they run.
    names = {*slurm.Executor.run_job.__code__.co_names}
    assert {"run_uuid", "format_job_exec", "slurm_logdir"} <= names


REFUSAL = (
    "SLURM sbatch failed. The error message was 'sbatch: a word of the site\n{said}'.\n"
    '    sbatch call:\n        sbatch --parsable ... --wrap="a page"\n'
)
AWAY = "sbatch: error: Batch job submission failed: Unable to contact slurm controller"
INVALID = "sbatch: error: Batch job submission failed: Invalid node name specified"
FULL = "sbatch: error: QOSLimit\nsbatch: error: Batch job submission failed: Job violates policy"
TAKEN = ["report_job_submission"]
REFUSED = ["refuse", "release", "report_job_success"]  # what waits for it begins


@pytest.mark.parametrize(
    ("run_id", "said", "in_queue", "calls", "pauses"),
    [
        ("a", [], None, ["before", *TAKEN], []),
        ("full", [], None, ["before", *REFUSED], []),
        ("a", [INVALID], None, ["before", *REFUSED], []),
        ("a", [AWAY] * 3, None, ["before", *["queued"] * 3, *TAKEN], [1, 2, 4]),
        # Slurm has taken it without saying so.
        ("a", [AWAY], 9, ["before", "queued", *TAKEN], [1]),
        ("a", [FULL] * 2, None, ["before", *["queued"] * 2, *TAKEN], [1, 2]),
    ],
)
def test_submissions(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch,
    run_id: str, said: list[str], in_queue: int | None, calls: list[str], pauses: list[float],
) -> None:  # fmt: skip
    answers, waits = list(said), []
    hooks.in_queue = in_queue

    def run_job(self: Any, job: Any) -> None:
        if answers:
            message = REFUSAL.format(said=answers.pop(0))
            self._report_job_error_threadsafe(SubmittedJobInfo(job), message)
        else:
            self.report_job_submission(info(job))

    monkeypatch.setattr(slurm.Executor, "run_job", run_job)
    monkeypatch.setattr(executor._ending, "wait", waits.append)
    executor.run_job(Stub(run_id))
    assert [call[0] for call in hooks.calls] == calls and waits == pauses
    lines = executor.logger.lines
    if calls[-1] == "report_job_success":
        why = "no space left: order.json" if run_id == "full" else INVALID.partition("error: ")[2]
        assert lines == [f"{run_id}: not submitted: {why}"]
    else:
        assert list(executor._live) == [in_queue or 7]
        if FULL in said:  # it is said once
            why = "Batch job submission failed: Job violates policy"
            assert lines == [f"sbatch: {why}; submitting again until Slurm takes it"]


def test_patience_has_an_end(executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snakemake_executor_plugin_scalesweep.PATIENCE_S", -1.0)
    message = REFUSAL.format(said=AWAY)
    monkeypatch.setattr(
        slurm.Executor, "run_job",
        lambda self, job: self._report_job_error_threadsafe(SubmittedJobInfo(job), message),
    )  # fmt: skip
    executor.run_job(Stub())
    assert hooks.calls[1][0] == "refuse" and hooks.calls[1][2].endswith("controller")


def look(executor: Any, *jobs: str) -> list[str | None]:
    """Look at jobs; those that are still to be looked after."""

    async def check() -> list[str | None]:
        infos = [info(Stub(), job) for job in jobs]
        return [left.external_jobid async for left in executor.check_active_jobs(infos)]

    return asyncio.run(check())


def test_a_look_before_there_are_jobs_needs_nothing(hooks: Hooks) -> None:
    """The thread that looks begins before the executor is complete, while that asks Slurm."""
    executor: Any = object.__new__(Executor)
    settings = SimpleNamespace(init_seconds_before_status_checks=5)
    executor.workflow = SimpleNamespace(executor_settings=settings)
    assert look(executor) == [] and executor.next_seconds_between_status_checks == 5


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


@pytest.mark.parametrize(("jobs", "lasts_s", "width"), [(50, 3, 500), (500, 3, 500), (60, 600, 20)])
def test_questions_grow_with_time_and_not_with_jobs(
    executor: Any,
    hooks: Hooks,
    monkeypatch: pytest.MonkeyPatch,
    jobs: int,
    lasts_s: int,
    width: int,
) -> None:
    """A simulated queue: two submissions a second, ``width`` jobs at a time."""
    now, asked = 0.0, Counter[str]()
    begun = [max(n / 2, n // width * lasts_s + n % width * lasts_s / width) for n in range(jobs)]
    ends = {n + 100: begin + lasts_s for n, begin in enumerate(begun)}
    seen: dict[int, float] = {}

    def queue() -> dict[int, LiveJob]:
        asked["squeue"] += 1
        return {i: LiveJob(i, "COMPLETED" if e <= now else "RUNNING") for i, e in ends.items()}

    def books(job_ids: Sequence[int]) -> dict[int, Any]:
        asked["sacct"] += 1
        return {}

    watch = JobWatch(queue, books, clock=lambda: now)
    monkeypatch.setattr(hooks, "ended", lambda jobs: dict.fromkeys(watch.ended([*jobs]), True))
    monkeypatch.setattr(time, "monotonic", lambda: now)
    executor._quiet_since = 0.0
    queued = sorted(ends)
    while queued:
        live = [i for i in queued if (i - 100) / 2 <= now]
        left = {int(word or 0) for word in look(executor, *map(str, live))}
        seen.update(dict.fromkeys(set(live) - left, now))
        queued = [i for i in queued if i not in seen]
        now += executor.next_seconds_between_status_checks
    # One for all jobs, and none of the accounting where they completed.
    assert asked["sacct"] == 0 and asked["squeue"] <= max(ends.values()) / 5 + 2
    # No end is seen later than by the least pause, or by a tenth of what was quiet before.
    assert all(seen[i] - end <= max(5, lasts_s / 10) for i, end in ends.items())


def test_nobody_waits_for_a_pause_when_all_is_over(executor: Any) -> None:
    executor.wait = True
    executor._next_seconds_between_status_checks = 10_000
    threading.Timer(0.1, lambda: setattr(executor, "wait", False)).start()
    asyncio.run(executor.sleep())


def test_jobs_are_cancelled_unless_they_are_left(executor: Any, hooks: Hooks) -> None:
    executor._live = {7: info(Stub())}
    executor.cancel_jobs([])
    assert hooks.calls == [("called_off", False), ("cancel_jobs", None), ("called_off", False)]
    hooks.calls.clear()
    executor._ending.clear()
    executor.leaving.set()
    executor.cancel_jobs([])
    assert {*hooks.calls} == {("called_off", True)}
    assert executor.logger.lines == ["1 job(s) stay in Slurm's queue: they are left"]
    executor.run_job(Stub())  # what waits for its turn is not submitted
    assert "run_job" not in [call[0] for call in hooks.calls]


def test_a_job_runs_what_the_hooks_say_and_asks_the_accounting_for_nothing(
    executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert executor.format_job_exec(Stub()) == "launch run a"
    monkeypatch.setattr(slurm, "validate_account", None)
    monkeypatch.setattr(slurm, "get_account", None)
    job = Stub()
    assert next(executor.get_account_arg(job)) == "" == executor.get_partition_arg(job)
    job.resources |= {"slurm_account": "a b", "slurm_partition": "p"}
    assert next(executor.get_account_arg(job)) == " -A 'a b'"
    assert executor.get_partition_arg(job) == " -p p"
