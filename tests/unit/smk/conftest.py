"""An executor of profiles/slurm without Snakemake."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_slurm as slurm
from snakemake_executor_plugin_scalesweep import Executor

from tests.fakes.executor import Hooks, Log


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """What the executor asks; the Slurm executor's own part only notes that it was called."""
    hooks = Hooks()
    monkeypatch.setattr(Executor, "rules", hooks)
    monkeypatch.setattr(Executor, "queue", hooks)
    monkeypatch.setattr(Executor, "leaving", threading.Event())
    for name in (
        *("run_job", "report_job_submission", "report_job_error", "handle_job_error"),
        *("report_job_success", "cancel_jobs"),
    ):
        monkeypatch.setattr(
            slurm.Executor, name,
            lambda self, job, *, _name=name, **more: hooks.calls.append((_name, more.get("msg"))),
        )  # fmt: skip
    return hooks


@pytest.fixture
def executor(hooks: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    executor: Any = object.__new__(Executor)
    executor._complaints, executor._live, executor._ending = {}, {}, threading.Event()
    executor._said = ""
    executor._job_submission_executor = ThreadPoolExecutor(1)
    executor.slurm_logdir, executor.run_uuid, executor.logger = tmp_path, "s", Log()
    settings = SimpleNamespace(init_seconds_before_status_checks=5)
    scheduler = SimpleNamespace(global_resources={"_nodes": 500})
    executor.workflow = SimpleNamespace(executor_settings=settings, scheduler=scheduler)
    executor._next_seconds_between_status_checks, executor._quiet_since = 5, time.monotonic()
    monkeypatch.setattr("snakemake_executor_plugin_scalesweep.get_job_wildcards", lambda job: "w")
    return executor
