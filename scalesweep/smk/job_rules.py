"""What the rules ``run`` and ``stage`` are made of: priority, resources, parameters of each job.

Resources are asked for at any time and for every job that is ready, so they have no effects. A
job's order is written when the job is about to start: on this machine where its command is made,
for Slurm before it is submitted.
"""

import contextlib
import logging
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from scalesweep.compute.job_spec import LAUNCHER_LOG, ORDER, RunPlace, write_order
from scalesweep.config.campaign import by_experiment
from scalesweep.core.formatting import shorten
from scalesweep.core.paths import REPO
from scalesweep.core.profilers import NONE
from scalesweep.core.visible import visible
from scalesweep.jobs.batch_request import batch_resources, run_request, staging_request
from scalesweep.jobs.dataset_staging import Staging
from scalesweep.jobs.run_spec import run_spec
from scalesweep.slurm.job_shape import RESOURCES, Shape, of_slurm, staging_shape
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.preflight import Preflight
from scalesweep.smk.submission import RUN

_log = logging.getLogger(__name__)

Resource = Callable[..., int | str | None]


class Wildcards(Protocol):
    """Those of the rule ``run`` (``runs``, ``run_id``) and of ``stage`` (``folder``, ``files``)."""

    runs: str
    run_id: str
    folder: str
    files: str


@dataclass(frozen=True)
class JobRules:
    """The jobs of one campaign."""

    context: SnakemakeContext
    preflight: Preflight
    # Whether runs share the Slurm job that this Snakemake is in, as many as its nodes allow.
    by_nodes: bool = False
    # Orders written by this Snakemake: runs and attempts.
    _ordered: set[tuple[str, int]] = field(default_factory=set)
    # Digest of each run's order.
    _digests: dict[str, str] = field(default_factory=dict)

    @property
    def runs_pattern(self) -> str:
        """Pattern of the wildcard that holds the runs' folder.

        A wildcard, because the plugin names a job by rule and wildcards: it must tell whose it is.
        """
        return re.escape(self.context.runs_folder)

    @property
    def retries(self) -> int:
        """How often a failed run may be tried again at most: the executor decides by the cause."""
        if self.context.submission is None:
            return 0
        return of_slurm(self.context.campaign.site).max_attempts - 1

    def threads_of(self, run_id: str, cores: int | None) -> int:
        """Cores Snakemake sets aside for a run: all of them where it is to be alone."""
        experiment = self.context.runs[run_id][0]
        alone = experiment.alone and not (self.context.submission or self.context.batch)
        if self.by_nodes and not alone and self.context.campaign.site.concurrent_runs != 1:
            return 1
        return cores or 1 if alone else self._threads_per_run(cores)

    def _threads_per_run(self, cores: int | None) -> int:
        """The same, so that no more runs are made at once than the site allows."""
        if self.context.submission or self.context.batch:
            return 1
        cores = cores or 1
        # Of a cluster's site without its profile: one after the other, in what was allocated.
        at_once = self.context.campaign.site.concurrent_runs or 1
        # Rounded so that no more fit: with one of three cores each, three would run for two.
        return max(cores // at_once, cores // (at_once + 1) + 1)

    def threads_of_staging(self, cores: int | None) -> int:
        """Cores Snakemake sets aside for staging here: all of them."""
        return 1 if self.context.submission or self.context.batch else cores or 1

    def priority(self, run_id: str) -> int:
        """What makes Snakemake start runs in the order of the campaign, after everything else."""
        return -self.context.positions[run_id]

    def step(self, run_id: str, dry: bool) -> str:
        """A run in words, for people: ``toy ranks=2 size=8, repeat 1: 3 of 27``; in a ``dry`` run
        its id too."""
        experiment, run = self.context.runs[run_id]
        point = experiment.benchmark.scaled(run.point)
        axes = dict.fromkeys((*experiment.axes, *experiment.linked))
        values = [f"{name}={point[name]}" for name in axes if name in point]
        kind = f" under {run.profile}" if run.profile != NONE else ""
        head = " ".join([experiment.benchmark.name, *values]) + kind
        place = f"{self.context.positions[run_id]:,} of {len(self.context.positions):,}"
        name = f" ({run_id})" if dry else ""
        return visible(f"{shorten(head, 160)}, repeat {run.repeat + 1}: {place}{name}")

    def run_resources(self) -> dict[str, Resource]:
        """What the job of a run asks of Slurm, as functions of wildcards and attempt; of the Slurm
        job that Snakemake is in, so many nodes."""
        submission, context = self.context.submission, self.context
        if context.batch:
            own = context.campaign.site, context.runs
            return batch_resources(lambda it: run_request(own[0], *own[1][it.run_id]))
        if submission is None:
            runs, site = context.runs, context.campaign.site
            nodes: Resource = lambda wildcards: site.nodes_for(runs[wildcards.run_id][1].point)  # noqa: E731
            return {"nodes": nodes} if self.by_nodes else {}
        return self._resources(
            lambda wildcards, attempt: submission.request(wildcards.run_id, attempt).shape
        )

    def stage_resources(self) -> dict[str, Resource]:
        """What a staging job asks of Slurm, likewise."""
        if self.context.batch:
            return batch_resources(lambda _: staging_request(self.context.campaign.site))
        if self.context.submission is None:
            return {}
        return self._resources(lambda wildcards, attempt: staging_shape(self.context.campaign.site))

    def _resources(self, shape: Callable[[Wildcards, int], Shape]) -> dict[str, Resource]:
        return {name: self._resource(name, shape) for name in RESOURCES}

    def _resource(self, name: str, shape: Callable[[Wildcards, int], Shape]) -> Resource:
        def resource(wildcards: Wildcards, attempt: int) -> int | str | None:
            value = shape(wildcards, attempt).resources().get(name)
            # Of an unknown memory Snakemake wants a number; for 0 its plugin asks for none.
            return 0 if value is None and name == "mem_mb" else value

        return resource

    def run_order(self, runs: str, run_id: str) -> str:
        """Path of the launcher's order, which is there when the run's job starts.

        Snakemake asks while it plans, and again when the job is about to start.
        """
        path = f"{runs}/{run_id}/{ORDER}"
        if self.preflight.claims.begun and self.context.submission is None:
            try:
                self.leave_order(run_id)
            except OSError as error:
                _log.error("%s: cannot be written: %s", path, error.strerror)
        return path

    def leave_order(self, run_id: str, attempt: int = 1) -> None:
        """Write the order of a run's next job, once. Raises UserError or OSError."""
        context = self.context
        if (run_id, attempt) in self._ordered:
            return
        experiment, run = context.runs[run_id]
        request = context.submission.request(run_id, attempt) if context.submission else None
        spec = run_spec(context.campaign, experiment, run, request)
        folder = Path(context.runs_folder, run_id)
        spec["order"] = self._place(run_id)
        self._digests[run_id] = write_order(folder / ORDER, spec)
        self._ordered.add((run_id, attempt))

    def _place(self, run_id: str) -> RunPlace:
        """The position of a run in the order of the campaign, for its record."""
        positions = self.context.positions
        seed = self.context.campaign.seed
        return {"seed": seed, "position": positions[run_id], "of": len(positions)}

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
        reading = (i for e, ids in by_experiment(context.runs) if e.benchmark.data for i in ids)
        wanted = [context.runs[run_id] for run_id in context.pending or reading]
        return Staging(context.campaign, wanted)

    def stage_command(self, folder: str, wanted: str, threads: int) -> str:
        """Shell command that makes the files that the marker ``staged-<wanted>`` represents."""
        most = self.context.campaign.site.stage_workers
        away = self.context.submission or self.context.batch
        workers = most if away else min(threads, most)
        return self._staging.command(folder, wanted, workers)

    def before(self, job: Any) -> None:
        """Leave the order of a Slurm job that is about to be submitted. Raises UserError or
        OSError."""
        if job.name == RUN and self.context.submission:
            self.context.submission.begin(job.wildcards_dict["run_id"])
            self.leave_order(job.wildcards_dict["run_id"], job.attempt)

    def release(self, job: Any) -> bool:
        """Have what waits for a run begin, which a record or failure.json speaks for; whether that
        could be: not on a full disk."""
        if job.name != RUN:
            return True
        (marker,) = self.context.markers([job.wildcards_dict["run_id"]])
        with contextlib.suppress(OSError):
            Path(marker).parent.mkdir(parents=True, exist_ok=True)
            Path(marker).touch()
            return True
        return False

    def command(self, job: Any) -> str:
        """What a Slurm job runs: the rule's command, without a Snakemake around it. What it prints
        is in Slurm's log and in the rule's."""
        words = job.wildcards_dict
        return self.run_job(**words) if job.name == RUN else self.staging_job(**words)

    def run_job(self, runs: str, run_id: str, forgive: bool = False) -> str:
        """Shell command of the job of a run; ``forgive``: the job succeeds although the run fails,
        which failure.json tells."""
        folder = f"{runs}/{run_id}"
        words = [sys.executable, str(REPO / "workflow" / "scripts" / "launch.py")]
        words += ["--order", f"{folder}/{ORDER}", f"--digest={self._digests.get(run_id, '')}"]
        words += ["--marker", f"{runs}/{self.context.markers_of_call}/{run_id}"]
        words += ["--forgive"] if forgive else []
        log = shlex.quote(f"{folder}/{LAUNCHER_LOG}")
        return shlex.join(["bash", "-c", f"exec {shlex.join(words)} > >(tee {log}) 2>&1"])

    def staging_job(self, folder: str, files: str) -> str:
        """Shell command of a staging job. Raises UserError if no run reads the data."""
        log, marker = f"{folder}/logs/staged-{files}.log", f"{folder}/staged-{files}"
        make = f"{self.stage_command(folder, files, 1)} 2>&1 | tee {shlex.quote(log)}"
        logs = shlex.quote(f"{folder}/logs")
        script = f"set -o pipefail; mkdir -p {logs} && {make} && touch {shlex.quote(marker)}"
        return shlex.join(["bash", "-c", script])
