"""An executor of profiles/slurm without Snakemake."""

from typing import Any

import pytest
from snakemake_executor_plugin_scalesweep import Executor

from tests.fakes.executor import Hooks, Log


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """What the executor asks; what it reports to Snakemake is only noted."""
    hooks = Hooks()
    monkeypatch.setattr(Executor, "rules", hooks)
    monkeypatch.setattr(Executor, "queue", hooks)
    monkeypatch.setattr(Executor, "leaving", False)
    for name in ("report_job_submission", "report_job_error", "report_job_success"):
        monkeypatch.setattr(
            Executor, name, lambda self, job, *, _name=name: hooks.calls.append((_name,))
        )
    return hooks


@pytest.fixture
def executor(hooks: Hooks) -> Any:
    executor: Any = object.__new__(Executor)
    executor._live, executor.logger = set(), Log()
    return executor
