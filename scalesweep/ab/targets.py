"""What is measured of two commits: the points of the campaign, the metric, and how often."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.ab.commits import Repository, top_of
from scalesweep.analysis.metrics import EPOCH_METRICS
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.experiment_checks import check_metric
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of
from scalesweep.jobs.dataset_staging import Staging
from scalesweep.judge.change import LEAST_PAIRS
from scalesweep.state.programs import program_files

MOST_REPEATS = 1000


@dataclass(frozen=True)
class Target:
    """A point of an experiment; ``repeats``: pairs that are measured; ``metric``: None for the
    main one."""

    experiment: Experiment
    point: Mapping[str, Any]
    repeats: int
    metric: str | None

    @property
    def label(self) -> str:
        """The experiment, and what distinguishes the point in it."""
        words = [
            f"{name} {text_of(self.experiment.benchmark.scaled(self.point).get(name))}"
            for name in self.experiment.axes
        ]
        return f"{self.experiment.name}: {', '.join(words) or 'the only point'}"

    def run_id(self, repeat: int) -> str:
        """Id of a run of this point, the same for every commit."""
        return self.experiment.benchmark.run_id(self.point, repeat)


def targets_of(campaign: Campaign, points: str, metric: str, repeats: str) -> list[Target]:
    """The points that ``--points`` names (empty: all), each once.

    Raises UserError for names, metrics and numbers that are none.
    """
    if campaign.site.launch is None:
        raise UserError(f"{campaign.site.file}: has no 'launch': nothing is measured there")
    wanted = int(repeats) if repeats.isascii() and repeats.isdecimal() else 0
    if repeats and not LEAST_PAIRS <= wanted <= MOST_REPEATS:
        allowed = f"numbers from {LEAST_PAIRS} to {MOST_REPEATS:,}"
        raise UserError(f"--repeats {repeats}: allowed: {allowed}")
    targets: dict[str, Target] = {}
    for experiment, point in _chosen(campaign, points.strip()):
        if metric:
            others = (*EPOCH_METRICS, *experiment.derived)
            check_metric(experiment.benchmark, metric, f"--metric {metric}", others)
        runs = [run for run in experiment.runs if run.point == point]
        count = wanted or max(LEAST_PAIRS, len(runs))
        target = Target(experiment, point, count, metric or None)
        targets.setdefault(target.run_id(0), target)
        for marker in Staging(campaign, [(experiment, runs[0])]).marker(experiment, runs[0]):
            if not Path(marker).exists():
                raise UserError(
                    f"{target.label}: its data set is not there ({marker}): call `snakemake` for "
                    "this campaign once, which makes it"
                )
    return [*targets.values()]


def _chosen(campaign: Campaign, text: str) -> list[tuple[Experiment, Mapping[str, Any]]]:
    """The points that ``text`` names: an experiment, an expression over parameters, or all if
    empty.

    Raises UserError if it is neither, or no point matches.
    """
    experiments = [experiment for experiment in campaign.experiments if not experiment.control]
    names = {experiment.name: experiment for experiment in experiments}
    if text in names:
        experiments, text = [names[text]], ""
    every = [(experiment, point) for experiment in experiments for point in experiment.points]
    if not text:
        return every
    known = {name for e in experiments for name in e.benchmark.scaled(e.points[0])}
    where = f"--points (an experiment, {' or '.join(names)}, or an expression)"
    rule = Expression(text, where).check_names(known)
    chosen = [
        (experiment, point)
        for experiment, point in every
        if rule.names <= (scaled := experiment.benchmark.scaled(point)).keys() and rule(scaled)
    ]
    if not chosen:
        raise UserError(f"--points {text}: no point of the campaign is of this kind")
    return chosen


def repository_of(campaign: Campaign, targets: Sequence[Target]) -> Repository:
    """The repository of what is measured: ``track.repository``, else that of the programs' files.

    Raises UserError where there is none, or there are several.
    """
    named = campaign.track.repository
    if named is not None:
        top = top_of(named)
        if top is None:
            raise UserError(f"{campaign.file}: track.repository: {named}: no git repository")
        return Repository(top)
    tops = {
        top_of(Path(path)) for target in targets for path in files_of(campaign, target).values()
    }
    folders = sorted(str(top) for top in tops if top)
    if len(folders) != 1:
        what = f"lie in several repositories ({', '.join(folders)})" if folders else "lie in none"
        raise UserError(
            f"{campaign.file}: no commits to measure: the programs' files {what}; add "
            "`track: {repository: PATH}`"
        )
    return Repository(Path(folders[0]))


def files_of(campaign: Campaign, target: Target) -> dict[str, str]:
    """Files of the program at a point, without words that the search path finds."""
    files = program_files(campaign, target.experiment.benchmark, target.point)
    return {name: path for name, path in files.items() if "/" in path}
