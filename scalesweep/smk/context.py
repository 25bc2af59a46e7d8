"""What the Snakefile knows: the campaign, which runs are pending, and what each rule needs.

Snakemake parses the Snakefile at every start and again inside every cluster job, so this module
imports nothing heavy; a job does not even import it (``scalesweep.compute.job_spec``).
"""

import re
import shlex
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import ORDER, RunPlace, staging_order, write_order
from scalesweep.config.campaign import Campaign, Experiment, Run
from scalesweep.config.executables import not_here
from scalesweep.config.log_patterns import Extract
from scalesweep.core.files import digest_of
from scalesweep.planning.artifacts import was_changed
from scalesweep.planning.dataset_staging import Staging
from scalesweep.planning.job_requests import shapes_for
from scalesweep.planning.plan import (
    STATES_FOLDER,
    budget_left,
    check_budget,
    cost_of_jobs,
    state_digest,
    state_file,
)
from scalesweep.planning.reextract import MARKERS, stale_runs
from scalesweep.planning.run_spec import run_spec
from scalesweep.planning.run_state import RunState, scan, tell_set_aside, untrusted
from scalesweep.planning.submission import LOGS, Submission
from scalesweep.slurm.commands import live_jobs
from scalesweep.slurm.job_shape import RESOURCES, Shape, staging_shape
from scalesweep.slurm.job_table import read_jobs
from scalesweep.smk.report_command import report_command
from scalesweep.smk.results_lock import Claims

STAGING_POLL_S = 10.0


@dataclass(frozen=True)
class SnakemakeContext:
    """The campaign as Snakemake's rules see it."""

    campaign: Campaign
    states: Mapping[str, RunState]
    options: Mapping[str, str]
    runs: Mapping[str, tuple[Experiment, Run]] = field(default_factory=dict)
    # Found while Snakemake builds its DAG, where an exception would come out as a traceback; the
    # Snakefile ends with the first of them before any job starts.
    problems: dict[str, str] = field(default_factory=dict)
    # Set if runs become jobs of Slurm (`--profile slurm`).
    submission: Submission | None = None
    # Whether this Snakemake only shows what it would do.
    dry: Callable[[], bool] = lambda: False
    # Runs in Snakemake's DAG.
    _to_run: set[str] = field(default_factory=set)
    # Orders left by this Snakemake: runs by attempt, data sets by file.
    _ordered: set[tuple[str, int] | Path] = field(default_factory=set)

    @property
    def results(self) -> str:
        """The campaign's results folder."""
        return str(self.campaign.results)

    @property
    def runs_folder(self) -> str:
        """Folder of this site's runs."""
        return str(self.campaign.runs_folder)

    @property
    def slurm_logs(self) -> str:
        """Folder of the logs of Slurm's jobs."""
        return str(LOGS)

    @property
    def runs_pattern(self) -> str:
        """Pattern of the wildcard that stands for the runs' folder.

        A wildcard, because the plugin names a job by rule and wildcards: it must tell whose it is.
        """
        return re.escape(self.runs_folder)

    @cached_property
    def awaited(self) -> tuple[str, ...]:
        """Ids of the runs that are not done, in plan order."""
        if self.options.get("pending") == "ignore":
            return ()
        if self.options.get("check") == "full":
            return tuple(self.runs)
        return tuple(run_id for run_id in self.runs if not self.states[run_id].settled)

    @cached_property
    def stale(self) -> Mapping[str, Extract]:
        """The runs whose logs are to be read again, with the patterns, which have changed."""
        if self.options.get("pending") == "ignore":
            return {}
        return stale_runs(self.runs, self.states)

    def reread(self) -> list[str]:
        """Marker that stands for logs that were read again."""
        if not self.stale:
            return []
        stamps = [[i, self.states[i].stamp, patterns.digest] for i, patterns in self.stale.items()]
        return [f"{self.results}/{MARKERS}/{digest_of(stamps, 6)}"]

    @cached_property
    def pending(self) -> tuple[str, ...]:
        """Ids of the runs to be started: those awaited that no job is at work on already."""
        live = self.submission.live if self.submission else {}
        return tuple(run_id for run_id in self.awaited if run_id not in live)

    @property
    def sessions(self) -> list[str]:
        """Names of the jobs of earlier Snakemake calls that are at work on awaited runs."""
        live = self.submission.live if self.submission else {}
        return sorted({live[run_id].session for run_id in self.awaited if run_id in live})

    def adopted(self) -> list[str]:
        """Marker that stands for the end of the jobs of earlier Snakemake calls."""
        if not self.sessions:
            return []
        return [f"{self.results}/{STATES_FOLDER}/adopted-{digest_of(self.sessions, 6)}"]

    def pending_records(self) -> list[str]:
        """The records that are still missing."""
        return [f"{self.runs_folder}/{run_id}/record.json" for run_id in self.pending]

    @cached_property
    def _state_file(self) -> str:
        return str(state_file(self.campaign, state_digest(self.campaign, self.states)))

    def inventory_input(self) -> list[str]:
        """What the plan and all behind it wait for.

        The awaited records, or, with none awaited, the stamp of the state on disk, which is
        newer than the plan if the plan is of another state.
        """
        if self.awaited or self.stale:
            return self.pending_records() + self.adopted() + self.reread()
        return [self._state_file]

    def stamp_new_state(self) -> None:
        """Leave a stamp if no plan was made of the state on disk (a run imported, deleted or
        failed, a campaign edited), or what was made of it is damaged: it makes Snakemake build
        everything behind it anew.

        Done while parsing, because Snakemake takes a missing input of an existing file for
        something it may skip, and only a newer one for a reason.
        """
        if not self.awaited and not self.stale:
            stamp = Path(self.inventory_input()[0])
            if not stamp.exists() or was_changed(self.campaign.results):
                stamp.parent.mkdir(parents=True, exist_ok=True)
                # Snakemake takes a newer file of the same content for the same.
                stamp.write_text(f"{time.time_ns()}\n")

    def threads_per_run(self, cores: int | None) -> int:
        """Cores Snakemake sets aside per run, so that no more run at once than the site allows."""
        if self.submission:
            return 1
        cores = cores or 1
        # Of a cluster's site without its profile: one after the other, in what was allocated.
        at_once = self.campaign.site.concurrent_runs or 1
        # Rounded so that no more fit: with one of three cores each, three would run for two.
        return max(cores // at_once, cores // (at_once + 1) + 1)

    def threads_of_staging(self, cores: int | None) -> int:
        """Cores Snakemake sets aside for staging here: all of them."""
        return 1 if self.submission else cores or 1

    def run_order(self, runs: str, run_id: str, attempt: int = 1) -> str:
        """Path of the launcher's order, which is there when the run's job starts."""
        path = f"{runs}/{run_id}/{ORDER}"
        if (run_id, attempt) not in self._ordered and not self.dry() and not self.problems:
            experiment, run = self.runs[run_id]
            request = self.submission.request(run_id, attempt) if self.submission else None
            spec = run_spec(self.campaign, experiment, run, request)
            spec["order"] = self._place(run_id)
            try:
                write_order(Path(path), spec)
                self._ordered.add((run_id, attempt))
            except OSError as error:
                self.problems[path] = f"{path}: cannot be written: {error.strerror}"
        return path

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return self.campaign.positions()

    def _place(self, run_id: str) -> RunPlace:
        """Where a run stands in the order of the campaign, for its record."""
        positions = self._positions
        seed = self.campaign.seed
        return {"seed": seed, "position": positions[run_id], "of": len(positions)}

    def turn(self, run_id: str) -> str:
        """The same for people, after the run's name."""
        return f" ({self._positions[run_id]:,} of {len(self._positions):,})"

    def priority(self, run_id: str) -> int:
        """What makes Snakemake start runs in the order of the campaign, after everything else."""
        return -self._positions[run_id]

    def run_resources(self) -> dict[str, Callable[..., Any]]:
        """What the job of a run asks of Slurm, as functions of wildcards and attempt."""
        if self.submission is None:
            return {}
        submission = self.submission

        def asked(wildcards: Any, attempt: int) -> Shape:
            self.run_order(self.runs_folder, wildcards.run_id, attempt)
            return submission.request(wildcards.run_id, attempt).shape

        return {name: self._resource(name, asked) for name in RESOURCES}

    def stage_resources(self) -> dict[str, Callable[..., Any]]:
        """What a staging job asks of Slurm, likewise."""
        if self.submission is None:
            return {}

        def asked(wildcards: Any, attempt: int) -> Shape:
            self.stage_command(wildcards.folder, wildcards.files, attempt)
            return staging_shape(self.campaign.site)

        return {name: self._resource(name, asked) for name in RESOURCES}

    def _resource(self, name: str, asked: Callable[[Any, int], Shape]) -> Callable[..., Any]:
        def resource(wildcards: Any, attempt: int) -> int | str | None:
            # Snakemake asks for resources before it submits: the order is there when the job is.
            found = asked(wildcards, attempt).resources().get(name)
            if name == "slurm_account" and self.submission:
                return found or self.submission.default_account or None
            return found

        return resource

    def staged(self, run_id: str) -> list[str]:
        """Marker of the data set that a run reads, or nothing.

        Called for the runs that are about to be made, so what hinders them is noted here.
        """
        experiment, run = self.runs[run_id]
        site = self.campaign.site
        self._to_run.add(run_id)
        if site.launch is None:
            self.problems["launch"] = (
                f"{self.campaign.file}: {len(self.awaited)} run(s) are missing, and site "
                f"{site.name} has no 'launch' to start them: import them again; "
                "`snakemake report` reports on the others"
            )
            return []
        program = next(iter(site.launcher(run.point)), site.python)
        if not self.submission and not site.prologue and shutil.which(program) is None:
            self.problems[program] = (
                f"site {site.name} starts runs with {program!r}, which is not on this machine; "
                "name another with --config site=NAME"
            )
        if not self.submission:
            for name in sorted(experiment.benchmark.command.programs([run.point])):
                why = not_here(name, self.campaign.programs[name], bool(site.prologue))
                if why:
                    self.problems[name] = f"{experiment.benchmark.name}: {why}"
        return self._staging.marker(experiment, run)

    @cached_property
    def _staging(self) -> Staging:
        return Staging(self.campaign, [self.runs[run_id] for run_id in self.pending or self.runs])

    def mend_data(self) -> None:
        """Have data sets that have lost files since staged again."""
        self._staging.drop_stale_markers()

    def stage_command(self, folder: str, wanted: str, threads: int) -> str:
        """Shell command that makes the files that the marker ``staged-<wanted>`` stands for."""
        most = self.campaign.site.stage_workers
        command = self._staging.command(
            folder, wanted, most if self.submission else min(threads, most)
        )
        order = staging_order(folder, wanted)
        if self.submission and not self.dry() and order not in self._ordered:
            write_order(order, {"command": command})
            self._ordered.add(order)
        return command

    @cached_property
    def claims(self) -> Claims:
        """What this Snakemake has to itself of the results folder."""
        return Claims(self.campaign.results, self.campaign.runs_folder)

    def claim_results(self, rules: Collection[str]) -> None:
        """Keep other Snakemakes out of what jobs of these rules write; UserError if one is in."""
        pending = {run_id for run_id in self._to_run if not self.states[run_id].settled}
        self.claims.begin(rules, pending, here=self.submission is None)

    def check_submission(self) -> None:
        """Look before jobs are submitted; raises UserError if Slurm or the budget says no."""
        submission = self.submission
        if submission is None or not self._to_run:
            return
        submission.check(self._to_run)
        campaign = self.campaign
        if campaign.budget_node_hours is not None:
            shapes = shapes_for(campaign, self.states, submission.estimates) or {}
            jobs = read_jobs(campaign.results / "jobs.csv")
            cost = cost_of_jobs(campaign, shapes, jobs, submission.estimates)
            check_budget(campaign, cost)
            submission.budget_left = budget_left(cost)

    def await_staging(self) -> None:
        """Wait for the staging jobs of an earlier Snakemake: two must not make the same files."""
        staging = self.submission.staging if self.submission else []
        while staging:
            print(f"waiting for staging job(s) {', '.join(str(job.job_id) for job in staging)}")
            time.sleep(STAGING_POLL_S)
            here = {job.job_id for job in live_jobs(Path.cwd())}
            staging = [job for job in staging if job.job_id in here]

    def restarts(self, rule: str, run_id: str, attempt: int) -> int:
        """How often Snakemake may restart a job of which try number ``attempt`` has failed."""
        if rule != "run" or self.submission is None:
            return 0
        return self.submission.restarts(run_id, attempt)

    def settle(self) -> None:
        """At the end: the causes of the runs whose jobs ended without a word of their launcher."""
        if self.submission:
            self.submission.settle_past(self.pending)

    def set_aside(self) -> str:
        """One line about the records that could not be trusted when stock was taken of them, and
        were set aside since the workflow was parsed; empty if there are none."""
        now = scan(self.campaign.runs_folder, self.runs)
        broken = untrusted({i: state for i, state in now.items() if state != self.states[i]})
        if not broken:
            return ""
        again = "run snakemake again to repeat these measurements"
        return f"{tell_set_aside(broken)}; {again if self.campaign.site.launch else 'import again'}"

    def campaign_arguments(self) -> str:
        """Command-line words that name this campaign to the scripts."""
        words = ["--campaign", str(self.campaign.file), "--site", self.campaign.site.name]
        if "profile" in self.options:
            words += ["--profile", self.options["profile"]]
        return shlex.join([*words, "--results", self.results])

    def report_command(self, snakefile: str) -> str:
        """Shell command that builds the report from what exists, whatever is pending."""
        campaign = self.campaign
        names = (campaign.file, campaign.site.name, self.results, self.options.get("profile"))
        return shlex.join(report_command(snakefile, *names))
