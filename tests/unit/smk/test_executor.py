"""The executor of profiles/slurm: what it does before, at and after each job."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_slurm as slurm
from snakemake.jobs import Job
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake_executor_plugin_scalesweep import Executor, ExecutorSettings, common_settings
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from tests.conftest import ROOT


class Hooks:
    """Hooks that note what they are called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.wanted = True

    def before(self, rule: str, wildcards: dict[str, str], attempt: int) -> None:
        self.calls.append(("before", rule, wildcards["run_id"], attempt))
        if wildcards["run_id"] == "full":
            raise OSError("no space left")

    def submitted(
        self, rule: str, wildcards: dict[str, str], attempt: int, job_id: int, log: str
    ) -> None:
        self.calls.append(("submitted", wildcards["run_id"], attempt, job_id, log))

    def retry(self, rule: str, wildcards: dict[str, str], attempt: int, job_id: int) -> bool:
        self.calls.append(("retry", wildcards["run_id"], attempt, job_id))
        return self.wanted


class Stub:
    """A job of the rule ``run`` as an executor sees it."""

    def __init__(self, run_id: str = "a", restarts: int = 3) -> None:
        self.name, self.wildcards_dict = "run", {"runs": "r", "run_id": run_id}
        self.attempt, self.restart_times = 1, restarts


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """Set for the executor; the Slurm executor's own part only notes that it was called."""
    hooks = Hooks()
    monkeypatch.setattr(Executor, "hooks", hooks)
    for name in ("run_job", "report_job_submission", "report_job_error", "handle_job_error"):
        monkeypatch.setattr(
            slurm.Executor, name,
            lambda self, job, *, _name=name, **more: hooks.calls.append((_name, more.get("msg"))),
        )  # fmt: skip
    return hooks


@pytest.fixture
def executor(hooks: Hooks) -> Any:
    executor: Any = object.__new__(Executor)
    executor._worth_another = set()
    return executor


def info(job: Stub, job_id: str | None = "7") -> SubmittedJobInfo:
    return SubmittedJobInfo(job, job_id, {"slurm_logfile": Path("l/7.log")})  # type: ignore[arg-type]


def test_snakemake_finds_it_by_its_name_with_the_settings_of_slurms() -> None:
    plugin = ExecutorPluginRegistry().get_plugin("scalesweep")
    assert plugin.executor is Executor and issubclass(Executor, slurm.Executor)
    assert ExecutorSettings is slurm.ExecutorSettings and common_settings is slurm.common_settings
    keys = (ROOT / "profiles" / "slurm" / "config.yaml").read_text()
    assert "executor: scalesweep" in keys and "\nslurm-" not in keys


def test_what_it_overrides_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("run_job", "report_job_submission", "report_job_error", "handle_job_error"):
        assert name in vars(Executor) and callable(getattr(slurm.Executor, name))
    # Retries are counted by these, after handle_job_error.
    assert isinstance(Job.restart_times, property) and Job.attempt.fset is not None
    assert "handle_job_error" in JobScheduler._handle_error.__code__.co_names


def test_orders_are_left_before_a_job_is_submitted(executor: Any, hooks: Hooks) -> None:
    executor.run_job(Stub())
    assert hooks.calls == [("before", "run", "a", 1), ("run_job", None)]
    hooks.calls.clear()
    executor.run_job(Stub("full"))
    # One that could not be left: the job is not submitted, and never worth another try.
    assert hooks.calls == [
        ("before", "run", "full", 1), ("report_job_error", "not submitted: no space left. "),
    ]  # fmt: skip


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
        executor.report_job_error(info(job, str(attempt)))
        scheduler._handle_error(job)
        if job in scheduler.failed:
            break
        assert job in restarted and job.attempt == attempt + 1
    asked = [call for call in hooks.calls if call[0] == "retry"]
    # Three restarts at most, as the rule says.
    assert asked == [("retry", "a", n, n) for n in ((1, 2, 3, 4) if wanted else (1,))]


def test_without_a_job_or_a_word_of_the_cause_there_is_no_restart(
    executor: Any, hooks: Hooks
) -> None:
    job = Stub()
    executor.report_job_error(info(job, None))  # sbatch refused it
    executor.handle_job_error(job)
    assert job.attempt == 4 and not [call for call in hooks.calls if call[0] == "retry"]
