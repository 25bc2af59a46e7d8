"""What the executor of profiles/slurm is tested with: hooks, jobs and a logger that keep what they
are told."""

from pathlib import Path
from typing import Any

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo


class Hooks:
    """Hooks that note what they are called with, and say what they are to say."""

    LEFT = "they are left"

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.over: dict[int, bool] = {}
        self.verdict = True
        self.in_queue: int | None = None
        self.away = False
        self.patient: bool | None = None

    def before(self, rule: str, wildcards: dict[str, str], attempt: int) -> None:
        self.calls.append(("before", rule, wildcards["run_id"], attempt))
        if wildcards["run_id"] == "full":
            raise OSError(28, "no space left", "order.json")

    def passes(self, said: str, queued: int) -> bool:
        return "Unable to contact" in said or "QOSLimit" in said

    def command(self, rule: str, wildcards: dict[str, str]) -> str:
        return f"launch {rule} {wildcards['run_id']}"

    def queued(self, rule: str, wildcards: dict[str, str], patient: bool) -> int | None:
        self.calls.append(("queued", wildcards["run_id"]))
        self.patient = patient
        if self.away and not patient:
            raise OSError("Slurm does not answer")
        return self.in_queue

    def submitted(self, rule: str, wildcards: dict[str, str], job_id: int) -> None:
        self.calls.append(("submitted", wildcards["run_id"], job_id))

    def refused(self, rule: str, wildcards: dict[str, str], why: str) -> tuple[bool, str]:
        self.calls.append(("refused", wildcards["run_id"], why))
        return True, f"{wildcards['run_id']}: not submitted: {why}"

    def ended(self, job_ids: list[int]) -> dict[int, bool]:
        if 13 in job_ids:
            raise OSError("disk full")
        return {job_id: made for job_id, made in self.over.items() if job_id in job_ids}

    def called_off(self, left: bool) -> None:
        self.calls.append(("called_off", left))

    def failed(
        self, rule: str, wildcards: dict[str, str], attempt: int, job_id: int
    ) -> tuple[bool, str]:
        self.calls.append(("failed", wildcards["run_id"], attempt, job_id))
        return self.verdict, "TIMEOUT after 60 s"


class Stub:
    """A job of the rule ``run`` as an executor sees it."""

    def __init__(self, run_id: str = "a") -> None:
        self.name, self.wildcards_dict = "run", {"runs": "r", "run_id": run_id}
        self.attempt = 1
        self.resources: dict[str, Any] = {"nodes": 2, "runtime": 4}


class Log:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.info = self.warning = self.error = self.lines.append


def info(job: Stub, job_id: str | None = "7") -> SubmittedJobInfo:
    return SubmittedJobInfo(job, job_id, {"slurm_logfile": Path("l/7.log")})  # type: ignore[arg-type]
