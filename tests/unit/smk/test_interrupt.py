"""Ctrl-C while jobs are submitted: none stays in the queue, none counts as failed."""

import threading
import time
from typing import Any

import pytest
import snakemake_executor_plugin_slurm as slurm
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from tests.fakes.executor import Hooks, Stub, info


def test_a_job_that_is_being_submitted_is_cancelled_too(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[list[str | None]] = []
    begun = threading.Event()

    def run_job(self: Any, job: Any) -> None:
        begun.set()
        assert self._ending.wait(60)
        time.sleep(0.1)
        self.report_job_submission(info(job, "9"))

    monkeypatch.setattr(slurm.Executor, "run_job", run_job)
    monkeypatch.setattr(
        slurm.Executor, "cancel_jobs",
        lambda self, jobs: cancelled.append([one.external_jobid for one in jobs]),
    )  # fmt: skip
    executor._live = {7: info(Stub())}
    executor._job_submission_executor.submit(executor.run_job, Stub("late"))
    assert begun.wait(60)
    executor.cancel_jobs([])
    assert cancelled == [["7"], ["9"]]


@pytest.mark.parametrize("slurm_has_it", [True, False, None])
def test_an_interrupt_that_ends_sbatch_is_no_failure(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch, slurm_has_it: bool | None
) -> None:
    """Ctrl-C ends every process of the terminal, maybe before the call knows of it."""
    hooks.in_queue, hooks.away = 9 if slurm_has_it else None, slurm_has_it is None

    def run_job(self: Any, job: Any) -> None:
        threading.Timer(0.05, self._ending.set).start()
        message = "SLURM sbatch failed. The error message was ''.\n"
        self._report_job_error_threadsafe(SubmittedJobInfo(job), message)

    monkeypatch.setattr("snakemake_executor_plugin_scalesweep._TICK_S", 60.0)
    monkeypatch.setattr(slurm.Executor, "run_job", run_job)
    executor.run_job(Stub())
    assert list(executor._live) == ([9] if slurm_has_it else [])
    assert {"refuse", "report_job_error"}.isdisjoint(call[0] for call in hooks.calls)


def test_nobody_waits_for_a_slurm_that_is_away_once_the_call_ends(
    executor: Any, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks.away = True

    def run_job(self: Any, job: Any) -> None:
        message = "SLURM sbatch failed. The error message was 'Unable to contact slurm'.\n"
        self._report_job_error_threadsafe(SubmittedJobInfo(job), message)

    monkeypatch.setattr(slurm.Executor, "run_job", run_job)
    threading.Timer(0.2, executor._ending.set).start()
    executor.run_job(Stub())
    assert [call[0] for call in hooks.calls] == ["before", "queued"]
    assert hooks.patient is False
