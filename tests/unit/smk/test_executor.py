"""The executor of profiles/slurm: what it does before, at and after each job."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_slurm as slurm
from snakemake.jobs import Job
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake_executor_plugin_scalesweep import (
    Executor,
    ExecutorSettings,
    common_settings,
)
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from scalesweep.slurm.commands import Queued
from scalesweep.slurm.job_watch import JobWatch
from tests.conftest import ROOT
from tests.fakes.executor import Hooks, Stub, info


def test_snakemake_finds_it_by_its_name_with_the_settings_of_slurms() -> None:
    plugin = ExecutorPluginRegistry().get_plugin("scalesweep")
    assert plugin.executor is Executor and issubclass(Executor, slurm.Executor)
    assert ExecutorSettings is slurm.ExecutorSettings and common_settings is slurm.common_settings
    keys = (ROOT / "profiles" / "slurm" / "config.yaml").read_text()
    assert "executor: scalesweep" in keys and "\nslurm-" not in keys


def test_what_it_overrides_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *("run_job", "report_job_submission", "print_job_error", "handle_job_error", "sleep"),
        *("check_active_jobs", "cancel_jobs", "shutdown", "format_job_exec"),
        *("get_account_arg", "get_partition_arg"),
        "_report_job_error_threadsafe",
    ):
        assert name in vars(Executor) and callable(getattr(slurm.Executor, name))
    # All jobs have the name of the session, and this is what they run.
    assert {"run_uuid", "format_job_exec"} <= {*slurm.Executor.run_job.__code__.co_names}
    # Retries are counted by these, after handle_job_error.
    assert isinstance(Job.restart_times, property) and Job.attempt.fset is not None
    assert "handle_job_error" in JobScheduler._handle_error.__code__.co_names


def test_a_job_runs_what_the_hooks_say(executor: Any, hooks: Hooks) -> None:
    assert executor.format_job_exec(Stub()) == "launch run a"


def test_orders_are_left_before_a_job_is_submitted(executor: Any, hooks: Hooks) -> None:
    executor.run_job(Stub())
    assert hooks.calls == [("before", "run", "a", 1), ("run_job", None)]
    hooks.calls.clear()
    executor.run_job(Stub("full"))
    # One that could not be left: the job is not submitted, and never worth another try.
    assert hooks.calls == [
        ("before", "run", "full", 1), ("refused", "full", "no space left: order.json"),
        ("report_job_error", "full: not submitted: no space left: order.json"),
    ]  # fmt: skip


REFUSAL = (
    "SLURM sbatch failed. The error message was 'sbatch: a word of the site\n{said}'.\n"
    '    sbatch call:\n        sbatch --parsable ... --wrap="a page"\n'
)


def submit(executor: Any, monkeypatch: pytest.MonkeyPatch, *said: str) -> list[float]:
    """Submit a job, to which sbatch says this, then takes it; the pauses in between."""
    answers, pauses = list(said), []

    def run_job(self: Any, job: Any) -> None:
        if answers:
            message = REFUSAL.format(said=answers.pop(0))
            self._report_job_error_threadsafe(SubmittedJobInfo(job), message)
        else:
            self.report_job_submission(info(job))

    monkeypatch.setattr(slurm.Executor, "run_job", run_job)
    monkeypatch.setattr(executor._ending, "wait", pauses.append)
    executor.run_job(Stub())
    return pauses


def test_a_refused_job_is_named_in_the_words_of_sbatch(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "sbatch: error: Batch job submission failed: Invalid node name specified"
    assert submit(executor, monkeypatch, said) == []
    why = "Batch job submission failed: Invalid node name specified"
    assert hooks.calls[1:] == [
        ("refused", "a", why), ("report_job_error", f"a: not submitted: {why}")
    ]  # fmt: skip


AWAY = "sbatch: error: Batch job submission failed: Unable to contact slurm controller"


def test_submissions_wait_for_slurm(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert submit(executor, monkeypatch, AWAY, AWAY, AWAY) == [1, 2, 4]
    assert [call[0] for call in hooks.calls] == [
        "before", "queued", "queued", "queued", "submitted", "report_job_submission",
    ]  # fmt: skip


def test_a_job_that_slurm_has_taken_without_saying_so_is_not_submitted_twice(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hooks.in_queue = 9
    assert submit(executor, monkeypatch, AWAY) == [1]
    assert hooks.calls[2] == ("submitted", "a", 1, 9, str(tmp_path / "rule_run" / "w" / "9.log"))
    assert list(executor._live) == [9]


def test_patience_has_an_end(executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snakemake_executor_plugin_scalesweep.PATIENCE_S", -1.0)
    submit(executor, monkeypatch, AWAY)
    assert [call[0] for call in hooks.calls] == ["before", "refused", "report_job_error"]


FULL = "sbatch: error: QOSLimit\nsbatch: error: Batch job submission failed: Job violates policy"


def test_a_queue_that_takes_no_more_jobs_is_waited_for_and_its_limit_kept(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor._live = {n: info(Stub()) for n in range(5)}
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) in (3, 6):
            executor._live.popitem()  # one has ended
        return False

    def run_job(self: Any, job: Any) -> None:
        if len(self._live) >= 5:
            self._report_job_error_threadsafe(SubmittedJobInfo(job), REFUSAL.format(said=FULL))
        else:
            self.report_job_submission(info(job, str(100 + len(waits))))

    monkeypatch.setattr(slurm.Executor, "run_job", run_job)
    monkeypatch.setattr(executor._ending, "wait", wait)
    for run_id in "ab":
        executor.run_job(Stub(run_id))
    # The second one waited for room without asking sbatch in vain.
    assert len(waits) == 6 and len(executor._live) == 5
    (line,) = executor.logger.lines
    assert line.startswith("Slurm takes no more than 5 job(s) of this call at a time (QOSLimit)")
    assert not [call for call in hooks.calls if call[0] == "refused"]


def test_a_limit_of_no_job_at_all_is_a_refusal(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snakemake_executor_plugin_scalesweep.PATIENCE_S", -1.0)
    hooks.others = False
    submit(executor, monkeypatch, FULL)
    assert hooks.calls[1][0] == "refused" and hooks.calls[1][2].endswith("policy (QOSLimit)")


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


def test_the_hooks_say_which_jobs_are_over(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks.over, hooks.wanted = {7: True, 8: False}, False
    assert look(executor, "7", "8", "9") == ["9"]
    assert hooks.calls == [
        ("report_job_success", None), ("failed", "a", 1, 8),
        ("report_job_error", "TIMEOUT after 60 s"),
    ]  # fmt: skip
    assert executor.next_seconds_between_status_checks == 5
    # While nothing ends the queue is left alone for longer: of a wait, a tenth is idle.
    now = time.monotonic()
    for quiet_s, pause_s in ((0, 5), (40, 5), (80, 8), (250, 25), (900, 30)):
        monkeypatch.setattr(time, "monotonic", lambda quiet_s=quiet_s: now + quiet_s)
        executor._quiet_since = now
        assert look(executor, "9") == ["9"]
        assert executor.next_seconds_between_status_checks == pytest.approx(pause_s)
    # An error while looking is no end of the wait.
    assert look(executor, "13") == ["13"] and executor.logger.lines == ["Slurm jobs: disk full"]


@pytest.mark.parametrize(("jobs", "lasts_s", "width"), [(50, 3, 500), (500, 3, 500), (60, 600, 20)])
@pytest.mark.slow
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

    def queue() -> dict[int, Queued]:
        asked["squeue"] += 1
        return {i: Queued("COMPLETED" if end <= now else "RUNNING", "") for i, end in ends.items()}

    def books(job_ids: Sequence[int]) -> dict[int, Any]:
        asked["sacct"] += 1
        return {}

    watch = JobWatch(queue, books, clock=lambda: now)
    monkeypatch.setattr(hooks, "ended", lambda ids: dict.fromkeys(watch.ended(ids), True))
    monkeypatch.setattr(time, "monotonic", lambda: now)
    executor._quiet_since = executor._submitting_since = 0.0
    queued = sorted(ends)
    while queued:
        live = [i for i in queued if (i - 100) / 2 <= now]
        executor._submitted = min(jobs, int(2 * now) + 1)
        hooks.to_come = jobs - executor._submitted
        left = {int(word or 0) for word in look(executor, *map(str, live))}
        seen.update(dict.fromkeys(set(live) - left, now))
        queued = [i for i in queued if i not in seen]
        now += executor.next_seconds_between_status_checks
    # One for all jobs, and none of the accounting where they completed; half as many while
    # submitting takes long.
    last_s = max(ends.values())
    assert asked["sacct"] == 0 and asked["squeue"] <= last_s / (5 if jobs < 500 else 9) + 2
    # No end is seen later than by the least pause, or by a tenth of what was quiet before, or of
    # the time that submitting still takes.
    for i, end in ends.items():
        assert seen[i] - end <= max(5, lasts_s / 10, (jobs / 2 - end) / 10 + 1)


def test_the_queue_is_looked_at_often_where_an_end_lets_another_job_begin(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    executor._submitting_since, executor._submitted, hooks.to_come = now - 50, 100, 400

    def pause_s(made: bool) -> float:
        hooks.over = {7: made}
        assert look(executor, "7", "8") == ["8"]
        return float(executor.next_seconds_between_status_checks)

    # After one that failed too: it may be tried again, or no more like it be submitted.
    assert (pause_s(True), pause_s(False), pause_s(True)) == (20, 5, 20)
    executor.workflow.scheduler.global_resources["_nodes"] = 2  # snakemake --jobs 2
    assert pause_s(True) == 5
    executor.workflow.scheduler.global_resources.clear()
    assert pause_s(True) == 20
    executor._room = 7  # MaxSubmitJobs
    assert pause_s(True) == 5


def test_a_job_whose_id_another_one_has_got_is_lost(executor: Any, hooks: Hooks) -> None:
    first, second = info(Stub("a")), info(Stub("b"))
    executor.report_job_submission(first)
    executor.report_job_submission(second)
    hooks.calls.clear()

    async def check() -> list[Any]:
        return [left async for left in executor.check_active_jobs([first, second])]

    (left,) = asyncio.run(check())
    assert left is second and hooks.calls[0] == ("failed", "a", 1, 7, "lost")


def test_a_failure_is_one_line(executor: Any, hooks: Hooks) -> None:
    executor.print_job_error(info(Stub()), "a: exit code 3")
    assert executor.logger.lines == ["a: exit code 3"]


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
    assert executor.logger.lines[0].startswith("1 job(s) stay in")
    executor.run_job(Stub())  # what waits for its turn is not submitted
    assert "run_job" not in [call[0] for call in hooks.calls]


def test_ids_are_noted_when_slurm_has_the_job(executor: Any, hooks: Hooks) -> None:
    executor.report_job_submission(info(Stub()))
    assert hooks.calls[0] == ("submitted", "a", 1, 7, "l/7.log")
    assert hooks.calls[1][0] == "report_job_submission"


@pytest.mark.parametrize("wanted", [True, False])
def test_the_cause_decides_once_whether_a_job_is_restarted(
    executor: Any, hooks: Hooks, wanted: bool
) -> None:
    hooks.wanted = wanted
    job = Stub()
    scheduler: Any = object.__new__(JobScheduler)
    restarted: set[Any] = set()
    dag = SimpleNamespace(jobid=lambda job: 1, _ready_jobs=restarted)
    scheduler.workflow = SimpleNamespace(dryrun=True, dag=dag)
    scheduler.get_executor = lambda job: executor
    scheduler._free_resources = lambda job: None
    for attempt in (1, 2, 3, 4):
        scheduler.running, scheduler.failed = {job}, set()
        executor._report_failed(info(job, str(attempt)), attempt)
        scheduler._handle_error(job)
        if job in scheduler.failed:
            break
        assert job in restarted and job.attempt == attempt + 1
    asked = [call for call in hooks.calls if call[0] == "failed"]
    # Three restarts at most, as the rule says.
    assert asked == [("failed", "a", n, n) for n in ((1, 2, 3, 4) if wanted else (1,))]


def test_without_a_job_or_a_word_of_the_cause_there_is_no_restart(
    executor: Any, hooks: Hooks
) -> None:
    job = Stub()
    executor.report_job_error(info(job, None))  # sbatch refused it
    executor.handle_job_error(job)
    assert job.attempt == 4 and not [call for call in hooks.calls if call[0] == "failed"]


def test_no_job_asks_the_accounting_for_its_account(
    executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "validate_account", None)
    monkeypatch.setattr(slurm, "get_account", None)
    job = Stub()
    assert next(executor.get_account_arg(job)) == "" == executor.get_partition_arg(job)
    job.resources |= {"slurm_account": "a b", "slurm_partition": "p"}
    assert next(executor.get_account_arg(job)) == " -A 'a b'"
    assert executor.get_partition_arg(job) == " -p p"
