"""A campaign's jobs in a batch system other than Slurm, by three commands of the profile.

What ``Submission`` does beyond that, this does not: jobs that an earlier call left in the queue are
not found, and nothing is tried again within a call.
"""

import logging
import math
import re
import shlex
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.site import Site
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.record import FAILURE, RECORD, write_failure
from scalesweep.smk.submission import RUN

_log = logging.getLogger(__name__)

PATIENCE_S = 60.0  # for one command
# Beyond the limit of the program, which ends it itself: for the start, and the record.
BESIDE_MINUTES = 2
MB_PER_GB = 1024
STAGING_MINUTES = 60


@dataclass
class BatchQueue:
    """What becomes of the jobs, as ``Submission`` for Slurm."""

    LEFT: ClassVar = "the next call does not find them"

    rules: Any  # scalesweep.smk.job_rules.JobRules
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
        words, context = job.wildcards_dict, self.rules.context
        site = context.campaign.site
        if job.name == RUN:
            folder = Path(context.runs_folder, words["run_id"])
            request = run_request(site, *context.runs[words["run_id"]])
        else:
            folder, request = Path(words["folder"], "logs"), staging_request(site)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder.absolute() / "job.sh"
        path.write_text(f"#!/bin/sh\ncd {shlex.quote(str(Path.cwd()))} && {script}\n")
        path.chmod(0o755)
        command = f"{filled(self.commands.submit_cmd, request)} {shlex.quote(str(path))}"
        said, why = _said(command)
        number = re.search(r"\d+", said)
        if number:
            return int(number[0]), ""
        return None, why or f"no id of a job in {said.strip()!r}, which {command} printed"

    def ended(self, jobs: Mapping[int, Any]) -> dict[int, tuple[bool, str]]:
        """Those of these jobs that have left the queue: whether what waits for them may begin, and
        what to say of one that left nothing else: it was killed, or cancelled."""
        said, why = _said(str(self.commands.queue_cmd))
        if why and why != self._complaint:
            _log.warning("the queue cannot be read: %s; trying again", why)
        self._complaint = why
        queued = {int(number) for number in re.findall(r"^\s*(\d+)", said, re.MULTILINE)}
        over: dict[int, tuple[bool, str]] = {}
        for job_id in () if why else jobs.keys() - queued:
            now = time.monotonic()
            since = now - self._missed.setdefault(job_id, now)
            if self.rules.made(jobs[job_id]).exists():
                over[job_id] = True, ""
            elif since >= self.latency_s:
                why = f"job {job_id} left the queue before the launcher wrote a result"
                over[job_id] = self.refuse(jobs[job_id], why, Cause.KILLED)
        return over

    def call_off(self, job_ids: Collection[int], left: bool) -> None:
        """Cancel these jobs."""
        if job_ids and not left:
            ids = " ".join(map(str, job_ids))
            if why := _said(f"{self.commands.cancel_cmd} {ids}")[1]:
                _log.error("jobs %s may still be queued: %s", ids, why)

    def refuse(self, job: Any, why: str, cause: str = Cause.NOT_SUBMITTED) -> tuple[bool, str]:
        """Note a job that was not submitted; as ``ended``."""
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


def run_request(site: Site, experiment: Experiment, run: Run) -> dict[str, int]:
    """The request of a run; ``mem_mb`` (MiB), ``gpus`` and ``cpus_per_node`` are of
    a node (0: not known), ``slots`` are the cores of all nodes, ``runtime`` is in minutes."""
    ranks, nodes = int(run.point["ranks"]), site.nodes_for(run.point)
    per_node = -(-ranks // nodes)
    cpus = max(1, site.cores_per_node // per_node)
    memory = experiment.keys.memory_gib_per_rank
    gib = site.memory_gib_per_node or 0 if memory is None else memory * per_node
    return {
        "nodes": nodes,
        "tasks": ranks,
        "tasks_per_node": per_node,
        "cpus_per_task": cpus,
        "cpus_per_node": cpus * per_node,
        "slots": cpus * per_node * nodes,
        "mem_mb": math.ceil(gib * MB_PER_GB),
        "gpus": site.gpus_per_node,
        "runtime": math.ceil(experiment.time_limit_minutes) + BESIDE_MINUTES,
    }


def staging_request(site: Site) -> dict[str, int]:
    """The request of a job that makes a data set, likewise: one task on one node."""
    workers = min(site.stage_workers, site.cores_per_node)
    cores = dict.fromkeys(("cpus_per_task", "cpus_per_node", "slots"), workers)
    single = dict.fromkeys(("nodes", "tasks", "tasks_per_node"), 1)
    return {**single, **cores, "mem_mb": 0, "gpus": 0, "runtime": STAGING_MINUTES}


def filled(submit_cmd: str, request: Mapping[str, int]) -> str:
    """The profile's command for a request, whose resources it has in braces. Raises UserError for
    what is no resource."""
    try:
        return submit_cmd.format(resources=SimpleNamespace(**request))
    except (AttributeError, LookupError, ValueError) as error:
        allowed = ", ".join(f"{{resources.{name}}}" for name in request)
        raise UserError(f"scalesweep-submit-cmd: {error}; allowed: {allowed}") from None
