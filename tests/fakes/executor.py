"""What the executor of profiles/slurm is tested with: hooks, jobs and a logger that keep what they
are told."""

from collections.abc import Collection, Mapping
from typing import Any

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo


class Hooks:
    """What an executor asks (``Executor.rules``, ``Executor.queue``): notes what it is called with,
    and says what it is to say."""

    LEFT = "they are left"

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.over: dict[int, tuple[bool, str]] = {}

    def before(self, job: "Stub") -> None:
        self.calls.append(("before", job.run_id))
        if job.run_id == "full":
            raise OSError(28, "no space left", "order.json")

    def command(self, job: "Stub") -> str:
        return f"launch {job.run_id}"

    def submit(self, job: "Stub", script: str) -> tuple[int | None, str]:
        assert script == f"launch {job.run_id}"
        self.calls.append(("submit", job.run_id))
        return (None, "Invalid node name specified") if job.run_id == "wrong" else (7, "")

    def refuse(self, job: "Stub", why: str) -> tuple[bool, str]:
        self.calls.append(("refuse", job.run_id, why))
        return True, f"{job.run_id}: not submitted: {why}"

    def release(self, job: "Stub") -> bool:
        self.calls.append(("release", job.run_id))
        return True

    def ended(self, jobs: Mapping[int, "Stub"]) -> dict[int, tuple[bool, str]]:
        if 13 in jobs:
            raise OSError("disk full")
        return {job_id: end for job_id, end in self.over.items() if job_id in jobs}

    def call_off(self, job_ids: Collection[int], left: bool) -> None:
        self.calls.append(("call_off", [*job_ids], left))


class Stub:
    """A job of the rule ``run`` as an executor sees it."""

    def __init__(self, run_id: str = "a", attempt: int = 1) -> None:
        self.name, self.run_id, self.attempt = "run", run_id, attempt
        self.wildcards_dict = {"run_id": run_id}


class Log:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.info = self.warning = self.error = self.lines.append


def info(job: Stub, job_id: str | None = "7") -> SubmittedJobInfo:
    return SubmittedJobInfo(job, job_id)  # type: ignore[arg-type]
