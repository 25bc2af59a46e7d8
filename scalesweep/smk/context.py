"""What the Snakefile knows: the campaign, and which of its runs are awaited and pending.

Snakemake parses the Snakefile at every start and again inside every cluster job, so this module
imports nothing heavy; a job does not even import it (``scalesweep.compute.job_spec``).
"""

import atexit
import contextlib
import json
import shlex
import shutil
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from scalesweep.adaptive.policy import RunPlan, new_runs, plan_runs
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import counted
from scalesweep.core.status import Status
from scalesweep.core.visible import visible
from scalesweep.planning.run_order import positions
from scalesweep.smk.submission import Submission
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import STATE, shown_experiments, take_stock, tell_set_aside, untrusted

# In the folder of a site's runs: the outputs of the rule ``run``, a folder for each call, so that
# none is there before. The record is none of Snakemake's files, which removes those of failed jobs.
CALLS = ".call"
# Set by `scalesweep run`, which calls Snakemake block by block, and at last for the report.
ROUND = "SCALESWEEP_ROUND"
FIRST, LATER, LAST = "first", "later", "last"
FOLDERS = ("tables", "figures")  # with one of each experiment


@dataclass
class SnakemakeContext:
    """The campaign as Snakemake's rules see it."""

    campaign: Campaign
    states: Mapping[str, RunState]
    options: Mapping[str, str]
    runs: Mapping[str, tuple[Experiment, Run]]
    # Set if runs become jobs of Slurm (`--profile slurm`).
    submission: Submission | None = None
    # Whether runs become jobs of another batch system (`--profile profiles/sge`).
    batch: bool = False
    # What is planned so far of points without a fixed number of repeats, and of series that may be
    # stopped.
    repeats: RunPlan | None = None
    # Which call of `scalesweep run` this is; after the first what failed is not tried again.
    round: str = ""
    # Whether Snakemake only collects what is there (--report).
    collects: bool = False
    # Runs that Snakemake makes, known once it has built its graph.
    to_run: set[str] = field(default_factory=set)

    @property
    def away(self) -> bool:
        """Whether runs are jobs of a batch system."""
        return self.batch or self.submission is not None

    @property
    def results(self) -> str:
        """The campaign's results folder."""
        return str(self.campaign.results)

    @property
    def runs_folder(self) -> str:
        """Folder of this site's runs."""
        return str(self.campaign.runs_folder)

    @cached_property
    def awaited(self) -> tuple[str, ...]:
        """Ids of the runs that are not done, in plan order."""
        held = self.repeats.held if self.repeats else frozenset()
        over = (Status.FAILED,) if self.round in (LATER, LAST) else ()
        left = {i for i, s in self.states.items() if not s.settled and s.status not in over}
        every = tuple(i for i in self.runs if i in left and i not in held)
        return tuple(self._trials(every)) if "try" in self.options else every

    def _trials(self, awaited: Iterable[str]) -> list[str]:
        """Of these runs the first of each shape of which none is done."""
        site = self.campaign.site

        def shape(run_id: str) -> Hashable:
            experiment, run = self.runs[run_id]
            return experiment.name, site.nodes_for(run.point), run.point["ranks"], run.profile

        tried = {shape(i) for i, state in self.states.items() if i in self.runs and state.settled}
        trials: dict[Hashable, str] = {}
        for run_id in sorted(awaited, key=self.positions.__getitem__):
            if (key := shape(run_id)) not in tried:
                trials.setdefault(key, run_id)
        return list(trials.values())

    @cached_property
    def pending(self) -> tuple[str, ...]:
        """Ids of the runs to be started: those awaited that no job is at work on already."""
        live = self.submission.live if self.submission else {}
        return tuple(run_id for run_id in self.awaited if run_id not in live)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Position of each run in the order of the campaign, from 1."""
        return positions(self.campaign)

    def varying(self, run_id: str) -> dict[str, Any]:
        """Of a run's point the parameters that vary in its experiment."""
        experiment, run = self.runs[run_id]
        point = experiment.benchmark.scaled(run.point)
        axes = dict.fromkeys((*experiment.axes, *experiment.linked))
        return {name: point[name] for name in axes if name in point}

    def markers(self, run_ids: Iterable[str]) -> list[str]:
        """The markers that the jobs of these runs leave."""
        return [f"{self.runs_folder}/{self.markers_of_call}/{i}" for i in run_ids]

    @cached_property
    def markers_of_call(self) -> str:
        """The folder of this call's markers, in the folder of the runs; it ends with the call."""
        name = f"{CALLS}/{time.time_ns()}"
        atexit.register(shutil.rmtree, Path(self.runs_folder, name), ignore_errors=True)
        return name

    def inventory_input(self, only_reports: bool) -> list[str]:
        """What the plan and all behind it wait for: the markers of the pending runs, or, with none
        awaited, the noted state, which is newer than the plan if the plan is of another state."""
        if self.pending and not only_reports:
            return self.markers(self.pending)
        state = self.campaign.results / STATE
        return [str(state)] if state.exists() else []

    def next_block(self) -> str:
        """How many runs follow from what was measured, in words; empty if none do."""
        if not (self.repeats and self.repeats.grows):
            return ""
        more = new_runs(plan_runs(self.campaign)) - set(self.pending)
        if not more:
            return ""
        said = f"{counted(len(more), 'more run')} planned by what was measured"
        return said if self.round else f"{said}: call again, or `scalesweep run`, which goes on"

    def parts(self, made: object = None) -> list[str]:
        """The folders of all experiments in ``tables`` and ``figures``, once ``made`` says (a
        checkpoint) that Snakemake knows which of them are to be made again."""
        names = shown_experiments(self.campaign)
        return [f"{self.results}/{folder}/{name}" for folder in FOLDERS for name in names]

    @cached_property
    def together(self) -> list[str]:
        """The experiments, if several, of which one process makes tables and figures: those with
        pending runs or without any tables or figures yet."""
        if self.collects:
            return []
        begun = [self.runs[run_id][0] for run_id in self.pending]
        if self.round == LAST:  # earlier calls have run them
            begun = list(self.campaign.experiments)
        names = {experiment.part_of or experiment.name for experiment in begun}
        stale = [
            name
            for name in shown_experiments(self.campaign)
            if name in names or not all(Path(self.results, it, name).is_dir() for it in FOLDERS)
        ]
        return stale if len(stale) > 1 else []

    @property
    def history_digest(self) -> str:
        """Which history the campaign's points are kept in, and as of which repository."""
        kept, repository = self.campaign.history, self.campaign.keys.track.repository
        return digest_of([str(kept.folder.resolve()), str(repository)] if kept else [], 6)

    def session(self) -> list[str]:
        """What is left when the finished points have been kept in the history, if there is one."""
        return [f"{self.results}/.history/{self.history_digest}"] if self.campaign.history else []

    def set_aside(self) -> str:
        """What is to be said about records that could not be trusted when they were read since the
        workflow was parsed; empty if there are none."""
        known = untrusted(self.states)
        now = untrusted(take_stock(self.campaign, self.runs))
        if not (broken := {i: why for i, why in now.items() if i not in known}):
            return ""
        again = "run snakemake again to repeat these measurements"
        again = again if self.campaign.site.launch else "import again"
        return f"{tell_set_aside(broken)}; {again}"

    def report_line(self, since: float = 0.0) -> str:
        """What the report says first and where it is, or how to have it if it is older than
        ``since``; empty while another call makes it."""
        if self.round in (FIRST, LATER):
            return ""
        page, summary = Path(self.results, "report.html"), Path(self.results, "summary.parquet")
        with contextlib.suppress(OSError):
            if page.stat().st_mtime >= max(summary.stat().st_mtime, since):
                said = Path(self.results, "logs", "report.log").read_text()
                return visible(f"{said}report: {page}")
        return "no report of this call: `snakemake report` makes it"

    def campaign_arguments(self) -> str:
        """Command-line words that name this campaign to the scripts."""
        given = {key: self.options[key] for key in ("profile", "history", "baseline")
                 if key in self.options}  # fmt: skip
        options = {"site": self.campaign.site.name, "results": self.results, **given}
        return shlex.join(["--campaign", json.dumps([str(self.campaign.file), options])])
