"""A campaign's jobs in a batch system other than Slurm, by three commands of the profile.

What ``Submission`` does beyond that, this does not: jobs that an earlier call left in the queue are
not found, and nothing is tried again within a call.
"""

import logging
import re
import shlex
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from scalesweep.core.causes import Cause
from scalesweep.core.record import FAILURE, RECORD, write_failure
from scalesweep.smk.job_rules import JobRules
from scalesweep.smk.submission import RUN

_log = logging.getLogger(__name__)

PATIENCE_S = 60.0  # for one command


@dataclass
class BatchQueue:
    """What becomes of the jobs, as ``Submission`` for Slurm."""

    LEFT: ClassVar = "the next call does not find them"

    rules: JobRules
    # With ``submit_cmd``, ``queue_cmd`` and ``cancel_cmd``, and how long (s) what a job has left
    # may take to be seen here: the executor sets them.
    commands: Any = None
    latency_s: float = 0.0
    # When each job was first missed in the queue (s, monotonic).
    _missed: dict[int, float] = field(default_factory=dict)
    _complaint: str = ""

    def submit(self, job: Any, script: str) -> tuple[int | None, str]:
        """Hand a job's shell script to the batch system: its id, or None and why not. Raises
        OSError."""
        words, runs = job.wildcards_dict, Path(self.rules.context.runs_folder)
        folder = runs / words["run_id"] if job.name == RUN else Path(words["folder"], "logs")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder.absolute() / "job.sh"
        path.write_text(f"#!/bin/sh\ncd {shlex.quote(str(Path.cwd()))} && {script}\n")
        path.chmod(0o755)
        command = f"{job.format_wildcards(self.commands.submit_cmd)} {shlex.quote(str(path))}"
        said, why = _said(command)
        number = re.search(r"\d+", said)
        if number:
            return int(number[0]), ""
        return None, why or f"no id of a job in {said.strip()!r}, which {command} printed"

    def passes(self, said: str, queued: int) -> bool:
        """Whether to submit once more: never."""
        return False

    def queued(self, job: Any, known: Collection[int], patient: bool) -> int | None:
        """Id of a job whose submission was interrupted: not known."""
        return None

    def ended(self, jobs: Mapping[int, Any]) -> dict[int, bool]:
        """Those of these jobs that have left the queue: whether they left what they were to
        make."""
        said, why = _said(str(self.commands.queue_cmd))
        if why and why != self._complaint:
            _log.warning("the queue cannot be read: %s; trying again", why)
        self._complaint = why
        queued = {int(number) for number in re.findall(r"^\s*(\d+)", said, re.MULTILINE)}
        over: dict[int, bool] = {}
        for job_id in () if why else jobs.keys() - queued:
            now = time.monotonic()
            since = now - self._missed.setdefault(job_id, now)
            made = self.rules.made(jobs[job_id]).exists()
            if made or since >= self.latency_s:
                over[job_id] = made
        return over

    def judge(self, job: Any, job_id: int) -> tuple[bool, str]:
        """What to say of a job that left the queue and nothing else: it was killed, or cancelled;
        whether what waits for it may begin."""
        why = f"job {job_id} left the queue before the launcher wrote a result"
        return self._failed(job, Cause.KILLED, why)

    def refuse(self, job: Any, why: str) -> tuple[bool, str]:
        """The same of a job that was not submitted."""
        return self._failed(job, Cause.NOT_SUBMITTED, why)

    def call_off(self, job_ids: Collection[int], left: bool) -> None:
        """Cancel these jobs."""
        if job_ids and not left:
            ids = " ".join(map(str, job_ids))
            if why := _said(f"{self.commands.cancel_cmd} {ids}")[1]:
                _log.error("jobs %s may still be queued: %s", ids, why)

    def _failed(self, job: Any, cause: str, why: str) -> tuple[bool, str]:
        words = job.wildcards_dict
        if job.name != RUN:
            return False, f"staging {words['folder']}: {why}"
        folder = Path(self.rules.context.runs_folder, words["run_id"])
        if not (folder / RECORD).exists():
            write_failure(folder, {"cause": cause, "detail": why})
        return True, f"{words['run_id']}: {cause}: {why} ({folder / FAILURE})"


def _said(command: str) -> tuple[str, str]:
    """What a shell command prints, and why it failed: its complaint as one line."""
    try:
        done = subprocess.run(
            command, shell=True, text=True, timeout=PATIENCE_S, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"{command} did not answer within {PATIENCE_S:g} s"
    complaint = " ".join(done.stderr.split()) or f"{command} ended with {done.returncode}"
    return (done.stdout, "") if done.returncode == 0 else ("", complaint)
