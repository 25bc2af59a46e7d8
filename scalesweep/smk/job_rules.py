"""What the rules ``run`` and ``stage`` are made of: priority, resources, parameters of each job.

Resources are asked for at any time and for every job that is ready, so they have no effects. A
job's order is written when the job is about to start: on this machine where its command is made,
for Slurm before it is submitted.
"""

import contextlib
import logging
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import LAUNCHER_LOG, ORDER, write_order
from scalesweep.core.formatting import shorten
from scalesweep.core.paths import REPO
from scalesweep.core.profilers import NONE
from scalesweep.core.visible import visible
from scalesweep.jobs.dataset_staging import Staging
from scalesweep.jobs.run_spec import run_spec
from scalesweep.slurm.job_shape import of_slurm
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.preflight import Preflight
from scalesweep.smk.submission import RUN

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobRules:
    """The jobs of one campaign."""

    context: SnakemakeContext
    preflight: Preflight
    # Whether runs share the Slurm job that this Snakemake is in, as many as its nodes allow.
    by_nodes: bool = False
    # Digest of each run's order.
    _digests: dict[str, str] = field(default_factory=dict)

    @property
    def retries(self) -> int:
        """How often a failed run may be tried again at most: the executor decides by the cause."""
        if self.context.submission is None:
            return 0
        return of_slurm(self.context.campaign.site).max_attempts - 1

    def threads_of(self, run_id: str, cores: int | None) -> int:
        """Cores Snakemake sets aside for a run on this machine, so that no more are made at once
        than the site allows: all of them where it is to be alone."""
        site, cores = self.context.campaign.site, cores or 1
        if self.context.away:
            return 1
        if self.context.runs[run_id][0].alone:
            return cores
        if self.by_nodes and site.concurrent_runs != 1:
            return 1
        # Of a cluster's site without its profile: one after the other, in what was allocated.
        at_once = site.concurrent_runs or 1
        # Rounded so that no more fit: with one of three cores each, three would run for two.
        return max(cores // at_once, cores // (at_once + 1) + 1)

    def priority(self, run_id: str) -> int:
        """What makes Snakemake start runs in the order of the campaign, after everything else."""
        return -self.context.positions[run_id]

    def step(self, run_id: str, dry: bool) -> str:
        """A run in words, for people: ``toy ranks=2 size=8, repeat 1: 3 of 27``; in a ``dry`` run
        its id too."""
        experiment, run = self.context.runs[run_id]
        values = [f"{name}={value}" for name, value in self.context.varying(run_id).items()]
        kind = f" under {run.profile}" if run.profile != NONE else ""
        head = " ".join([experiment.benchmark.name, *values]) + kind
        place = f"{self.context.positions[run_id]:,} of {len(self.context.positions):,}"
        name = f" ({run_id})" if dry else ""
        return visible(f"{shorten(head, 160)}, repeat {run.repeat + 1}: {place}{name}")

    def run_resources(self) -> dict[str, Callable[[Any], int]]:
        """How many nodes a run takes of the Slurm job that Snakemake is in. What a job of its own
        asks for, its queue knows (``Submission.submit``)."""
        runs, site = self.context.runs, self.context.campaign.site
        nodes = {"nodes": lambda wildcards: site.nodes_for(runs[wildcards.run_id][1].point)}
        return nodes if self.by_nodes and not self.context.away else {}

    def run_order(self, run_id: str) -> str:
        """Path of the launcher's order, which is there when the run's job starts.

        Snakemake asks while it plans, and again when the job is about to start.
        """
        path = f"{self.context.runs_folder}/{run_id}/{ORDER}"
        if self.preflight.begun and self.context.submission is None:
            try:
                self.leave_order(run_id)
            except OSError as error:
                _log.error("%s: cannot be written: %s", path, error.strerror)
        return path

    def leave_order(self, run_id: str, attempt: int = 1) -> None:
        """Write the order of a run's next job. Raises UserError or OSError."""
        context = self.context
        request = context.submission.request(run_id, attempt) if context.submission else None
        spec = run_spec(context.campaign, *context.runs[run_id], request)
        positions = context.positions
        seed, place = context.campaign.keys.seed, positions[run_id]
        spec["order"] = {"seed": seed, "position": place, "of": len(positions)}
        path = Path(context.runs_folder, run_id, ORDER)
        self._digests[run_id] = write_order(path, spec)

    def staged(self, run_id: str) -> list[str]:
        """Marker of the data set that a run reads, or nothing.

        Called for the runs that are about to be made, so what hinders them is noted here.
        """
        if not self.preflight.look_at(run_id):
            return []
        return self._staging.marker(*self.context.runs[run_id])

    @cached_property
    def _staging(self) -> Staging:
        context = self.context
        reading = (run_id for run_id, (e, _) in context.runs.items() if e.benchmark.data)
        wanted = [context.runs[run_id] for run_id in context.pending or reading]
        return Staging(context.campaign, wanted)

    def stage_command(self, folder: str, wanted: str, threads: int) -> str:
        """Shell command that makes the files that the marker ``staged-<wanted>`` represents."""
        most = self.context.campaign.site.stage_workers
        workers = most if self.context.away else min(threads, most)
        return self._staging.command(folder, wanted, workers)

    def before(self, job: Any) -> None:
        """Leave the order of a job that is about to be submitted. Raises UserError or OSError."""
        if job.name == RUN:
            if self.context.submission:
                self.context.submission.begin(job.wildcards_dict["run_id"])
            self.leave_order(job.wildcards_dict["run_id"], job.attempt)

    def made(self, job: Any) -> Path:
        """What a job leaves for those that wait for it."""
        words = job.wildcards_dict
        if job.name == RUN:
            return Path(*self.context.markers([words["run_id"]]))
        return Path(words["folder"], f"staged-{words['files']}")

    def release(self, job: Any) -> bool:
        """Have what waits for a run begin, which a record or failure.json speaks for; whether that
        could be: not on a full disk."""
        if job.name != RUN:
            return True
        with contextlib.suppress(OSError):
            self.made(job).parent.mkdir(parents=True, exist_ok=True)
            self.made(job).touch()
            return True
        return False

    def command(self, job: Any) -> str:
        """What a job runs: the rule's command, without a Snakemake around it. What it prints is in
        the job's log and in the rule's."""
        words = job.wildcards_dict
        return self.run_job(**words) if job.name == RUN else self.staging_job(**words)

    def run_job(self, run_id: str) -> str:
        """Shell command of the job of a run."""
        folder = f"{self.context.runs_folder}/{run_id}"
        words = [sys.executable, str(REPO / "workflow" / "scripts" / "step.py"), "launch"]
        words += ["--order", f"{folder}/{ORDER}", f"--digest={self._digests.get(run_id, '')}"]
        words += ["--marker", *self.context.markers([run_id])]
        # Slurm's executor judges a failure; of others the job succeeds, which failure.json tells.
        words += ["--forgive"] if self.context.batch else []
        log = shlex.quote(f"{folder}/{LAUNCHER_LOG}")
        return shlex.join(["bash", "-c", f"exec {shlex.join(words)} > >(tee {log}) 2>&1"])

    def staging_job(self, folder: str, files: str) -> str:
        """Shell command of a staging job. Raises UserError if no run reads the data."""
        log, marker = f"{folder}/logs/staged-{files}.log", f"{folder}/staged-{files}"
        make = f"{self.stage_command(folder, files, 1)} 2>&1 | tee {shlex.quote(log)}"
        logs = shlex.quote(f"{folder}/logs")
        script = f"set -o pipefail; mkdir -p {logs} && {make} && touch {shlex.quote(marker)}"
        return shlex.join(["bash", "-c", script])
