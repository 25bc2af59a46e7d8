"""What the Snakefile knows: the campaign, which runs are pending, and what each rule needs.

Snakemake parses the Snakefile at every start and again inside every cluster job, so this module
imports nothing heavy and does in a job only what the job needs.
"""

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from scalesweep.campaign import Campaign, Experiment, Run, load_campaign
from scalesweep.errors import UserError
from scalesweep.plan import state_digest, state_file
from scalesweep.runs import data_folder, run_spec
from scalesweep.store import DONE, RunState, scan

# --config keys: what each does.
OVERRIDES = {
    "site": "run on another site than the campaign names",
    "results": "another results folder than the campaign names",
    "check": "full: put finished runs into the DAG too",
    "pending": "ignore: report on what is there, run nothing",
    "source": "folder of published results (import_cosmoflow)",
}


@dataclass(frozen=True)
class Workflow:
    """The campaign as Snakemake's rules see it."""

    campaign: Campaign
    states: Mapping[str, RunState]
    options: Mapping[str, str]
    runs: Mapping[str, tuple[Experiment, Run]] = field(default_factory=dict)
    # Found while Snakemake builds its DAG, where an exception would come out as a traceback; the
    # Snakefile ends with the first of them before any job starts.
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def results(self) -> str:
        """The campaign's results folder."""
        return str(self.campaign.results)

    @property
    def runs_folder(self) -> str:
        """Folder of this site's runs."""
        return str(self.campaign.runs_folder)

    @cached_property
    def pending(self) -> tuple[str, ...]:
        """Ids of the runs to be done now, in plan order."""
        if self.options.get("pending") == "ignore":
            return ()
        if self.options.get("check") == "full":
            return tuple(self.runs)
        return tuple(run_id for run_id in self.runs if self.states[run_id].status != DONE)

    def pending_records(self) -> list[str]:
        """The records that are still missing."""
        return [f"{self.runs_folder}/{run_id}/record.json" for run_id in self.pending]

    def inventory_input(self) -> list[str]:
        """What the plan and all behind it wait for.

        The pending records, or, with none pending, the stamp of the state on disk, which is
        newer than the plan if the plan is of another state.
        """
        if self.pending:
            return self.pending_records()
        return [str(state_file(self.campaign, state_digest(self.campaign, self.states)))]

    def stamp_new_state(self) -> None:
        """Leave a stamp if no plan was made of the state on disk (a run imported, deleted or
        failed, a campaign edited): it makes Snakemake build everything behind it anew.

        Done while parsing, because Snakemake takes a missing input of an existing file for
        something it may skip, and only a newer one for a reason.
        """
        if not self.pending:
            stamp = Path(self.inventory_input()[0])
            if not stamp.exists():
                stamp.parent.mkdir(parents=True, exist_ok=True)
                stamp.touch()

    def threads_per_run(self, cores: int) -> int:
        """Cores Snakemake sets aside per run, so that no more run at once than the site allows."""
        return max(1, cores // self.campaign.site.concurrent_runs)

    def spec(self, run_id: str) -> dict[str, Any]:
        """The launcher's description of a run."""
        experiment, run = self.runs[run_id]
        return run_spec(self.campaign, experiment, run)

    def staged(self, run_id: str) -> list[str]:
        """Marker of the data set that a run reads, or nothing.

        Called for the runs that are about to be made, so what hinders them is noted here.
        """
        experiment, run = self.runs[run_id]
        site = self.campaign.site
        program = next(iter(site.launcher(run.point)), site.python)
        if not site.prologue and shutil.which(program) is None:
            self.problems[program] = (
                f"site {site.name} starts runs with {program!r}, which is not on this machine; "
                "name another with --config site=NAME"
            )
        folder = data_folder(self.campaign, experiment.benchmark, run.point)
        return [] if folder is None else [f"{folder}/{self._markers[folder]}"]

    @cached_property
    def _needs(self) -> dict[str, tuple[Experiment, Run, dict[str, int]]]:
        """Data set folder -> largest number of files of each split that pending runs read."""
        needs: dict[str, tuple[Experiment, Run, dict[str, int]]] = {}
        for run_id in self.pending or self.runs:
            experiment, run = self.runs[run_id]
            data = experiment.benchmark.data
            folder = data_folder(self.campaign, experiment.benchmark, run.point)
            if data is None or folder is None:
                continue
            files = data.needed(run.point)
            if folder in needs:
                known = needs[folder][2]
                files = {split: max(count, known[split]) for split, count in files.items()}
            needs[folder] = (experiment, run, files)
        return needs

    @cached_property
    def _markers(self) -> dict[str, str]:
        return {
            folder: "staged-" + "-".join(f"{split}{count}" for split, count in files.items())
            for folder, (_, _, files) in self._needs.items()
        }

    def stage_command(self, folder: str, marker: str, workers: int) -> str:
        """Shell command that makes the files a marker stands for."""
        experiment, run, files = self._needs[folder]
        data = experiment.benchmark.data
        if data is None or self._markers[folder] != marker:
            raise UserError(f"{folder}/{marker}: no pending run reads this data set")
        words = [self.campaign.site.python, str(data.program), "--out", folder]
        for split, count in files.items():
            words += [f"--{split}", str(count)]
        words += ["--params", _json(data.spec(run.point)), "--workers", str(workers)]
        words += ["--reserve-gb", f"{self.campaign.site.reserve_disk_gb:g}"]
        return shlex.join(words)

    def drop_stale_markers(self) -> None:
        """Remove markers of data sets that have lost files since, so that staging mends them."""
        for folder, (_, _, files) in self._needs.items():
            marker = Path(folder, self._markers[folder])
            if marker.exists() and not all(
                _has_files(Path(folder, split), count) for split, count in files.items()
            ):
                marker.unlink()

    def campaign_arguments(self) -> str:
        """Command-line words that name this campaign to the scripts."""
        words = ["--campaign", str(self.campaign.file), "--site", self.campaign.site.name]
        return shlex.join([*words, "--results", self.results])

    def report_command(self, snakefile: str) -> str:
        """Shell command that builds the report from what exists, whatever is pending."""
        campaign = self.campaign
        return shlex.join(
            report_command(snakefile, campaign.file, campaign.site.name, self.results)
        )


def report_command(snakefile: str, campaign: Path, site: str, results: str) -> list[str]:
    """Command that builds a campaign's report from what exists and runs nothing.

    It takes no lock and calls no hook: a Snakemake that holds the lock calls it from its hook.
    """
    words = [sys.executable, "-m", "snakemake", "--snakefile", snakefile, "--nolock"]
    words += ["--no-hooks", "--cores", "1", "--quiet", "all", "--configfile", str(campaign)]
    words += ["--config", "pending=ignore", f"site={site}", f"results={results}", "--", "all"]
    return words


def _json(value: Any) -> str:
    import json

    return json.dumps(value, sort_keys=True)


def _has_files(folder: Path, count: int) -> bool:
    try:
        return sum(name.suffix == ".tfrecord" for name in folder.iterdir()) >= count
    except OSError:
        return count == 0


def prepare(
    configfiles: Sequence[Path], overrides: Mapping[str, Any], default: Path, main: bool
) -> Workflow:
    """Read the campaign and, in the main process (``main``), the state of its runs.

    ``configfiles`` and ``overrides`` are Snakemake's --configfile and --config; ``default`` is
    the campaign if none is named. In the main process broken records are set aside here, before
    Snakemake builds its DAG. Raises UserError.
    """
    if len(configfiles) > 1:
        raise UserError("--configfile: one campaign at a time, please")
    unknown = sorted(set(overrides) - OVERRIDES.keys())
    if unknown:
        raise UserError(f"--config {unknown[0]}: unknown; allowed: {', '.join(OVERRIDES)}")
    options = {key: str(value) for key, value in overrides.items()}
    for key, allowed in (("check", "full"), ("pending", "ignore")):
        if options.get(key, allowed) != allowed:
            raise UserError(f"--config {key}={options[key]}: allowed: {key}={allowed}")
    path = _relative(configfiles[0] if configfiles else default)
    campaign = load_campaign(path, options.get("site"), options.get("results"), check=main)
    runs = campaign.unique_runs()
    states = scan(campaign.runs_folder, runs, quarantine=True) if main else {}
    if not main:
        options["check"] = "full"  # a job looks up its own run among all
    workflow = Workflow(campaign, states, options, runs)
    if campaign.site.launch is None and workflow.pending and main:
        raise UserError(
            f"{path}: {len(workflow.pending)} runs are not there, and site {campaign.site.name} "
            "has no 'launch' to make them; `snakemake report` shows what is there"
        )
    if main:
        workflow.drop_stale_markers()
        workflow.stamp_new_state()
    return workflow


def _relative(path: Path) -> Path:
    """The path as a person would type it: relative to the working folder where it is below it."""
    path = path.absolute()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
