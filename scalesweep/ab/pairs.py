"""What is measured of two commits: points of the campaign, and the pairs of runs at each.

``results/ab/<base>-<new>/<point>-<digest>/`` has ``base/<run id>`` and ``new/<run id>``, a folder
each as those of a campaign. A pair counts once both of its runs have a record, so a call that was
killed is gone on with, and more repeats add to those that are there.
"""

import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalesweep.ab.commits import SHORT, Repository, relocated, spellings, top_of
from scalesweep.analysis.metrics import EPOCH_METRICS
from scalesweep.compute.job_spec import ORDER, Order, write_order
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment, check_metric
from scalesweep.config.repeats import Run
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import text_of
from scalesweep.core.record import RECORD, read_failure
from scalesweep.jobs.dataset_staging import Staging
from scalesweep.jobs.run_spec import run_spec
from scalesweep.judge.change import LEAST_PAIRS
from scalesweep.state.programs import program_files

FOLDER = "ab"  # in the results
BASE, NEW = "base", "new"
FIRST = "first"  # folder of the runs that are not counted
SIDES = (BASE, NEW)


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
    """The points that ``--points`` names (empty: all), each once. Raises UserError for names,
    metrics and numbers that are none."""
    if campaign.site.launch is None:
        raise UserError(f"{campaign.site.file}: has no 'launch': nothing is measured there")
    for mend in campaign.pathless.values():
        raise UserError(mend)
    wanted = int(repeats) if repeats.isascii() and repeats.isdecimal() else 0
    if repeats and wanted < LEAST_PAIRS:
        raise UserError(f"--repeats {repeats}: allowed: numbers from {LEAST_PAIRS}")
    targets: dict[str, Target] = {}
    for experiment, point in _chosen(campaign, points.strip()):
        if metric:
            others = (*(() if experiment.benchmark.extract else EPOCH_METRICS), *experiment.derived)
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
    Raises UserError where there is none, or there are several."""
    named = campaign.keys.track.repository
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


@dataclass(frozen=True)
class Planned:
    """A run to be measured; ``repeat`` None: the first one, which is not counted."""

    target: Target
    side: str
    repeat: int | None


@dataclass(frozen=True)
class Pairs:
    """The pairs of two commits in a campaign's results folder."""

    campaign: Campaign
    repository: Repository
    base: str
    new: str
    _places: dict[str, Path] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.campaign.results / FOLDER / f"{self.base[:SHORT]}-{self.new[:SHORT]}"

    def commit(self, side: str) -> str:
        """The commit of a side."""
        return self.base if side == BASE else self.new

    def place(self, target: Target) -> Path:
        """Folder of a point; another one if something else about its measurement has changed."""
        point = target.run_id(0)
        if point not in self._places:
            order = {**self._spec(target, 0), "folder": ""}
            how = [order, list(self.campaign.keys.track.build), str(self.repository.top)]
            self._places[point] = self.folder / f"{point}-{digest_of(how, 3)}"
        return self._places[point]

    def _spec(self, target: Target, repeat: int) -> Order:
        run = Run(target.run_id(repeat), target.point, repeat)
        return run_spec(self.campaign, target.experiment, run)

    def run_folder(self, planned: Planned) -> Path:
        """Folder of a run."""
        place, repeat = self.place(planned.target), planned.repeat
        side = place / FIRST / planned.side if repeat is None else place / planned.side
        return side / planned.target.run_id(repeat or 0)

    def is_there(self, target: Target, repeat: int) -> bool:
        """Whether both runs of a pair have a record."""
        runs = (Planned(target, side, repeat) for side in SIDES)
        return all((self.run_folder(run) / RECORD).exists() for run in runs)

    def done(self, target: Target) -> list[int]:
        """Numbers of the pairs of a point that have been measured, whatever is asked for now."""
        return [*itertools.takewhile(lambda n: self.is_there(target, n), itertools.count())]

    def schedule(self, targets: Sequence[Target]) -> list[Planned]:
        """The runs that are missing, in the order in which they are measured.

        Of each point and commit one first that is not counted: it finds caches cold and bytecode
        missing. Then blocks of two pairs, A B B A, point by point.
        """
        missing = [
            (target, [n for n in range(target.repeats) if not self.is_there(target, n)])
            for target in targets
        ]
        blocks = max((len(repeats) for _, repeats in missing), default=0)
        return [
            Planned(target, side, None) for target, repeats in missing if repeats for side in SIDES
        ] + [
            Planned(target, side, repeat)
            for at in range(0, blocks, 2)
            for target, repeats in missing
            for repeat in repeats[at : at + 2]
            for side in (SIDES if repeat % 2 == 0 else SIDES[::-1])
        ]

    def failure(self, target: Target) -> tuple[str, str] | None:
        """The commit's side and the cause of a run of a point that has failed; None without one."""
        for side in SIDES:
            for repeat in (None, *range(target.repeats)):
                if failure := read_failure(self.run_folder(Planned(target, side, repeat))):
                    detail = f": {failure['detail']}" if failure.get("detail") else ""
                    return side, f"{failure.get('cause')}{detail}"
        return None

    def order(self, planned: Planned, checkout: Path) -> tuple[Path, str]:
        """Write the order that launches a run in a checkout; its path and digest.

        Paths of the repository become those of the checkout. What is left of the run is removed.
        Raises UserError if nothing in the order lies in the repository.
        """
        target = planned.target
        order = self._spec(target, planned.repeat or 0)
        files = files_of(self.campaign, target)
        tops, always = spellings(self.repository.top, files.values()), frozenset(files.values())

        def there(text: str) -> str:
            return relocated(text, tops, checkout, always)

        argv = list(map(there, order["argv"]))
        env = {name: there(value) for name, value in order["env"].items()}
        if argv == order["argv"] and env == order["env"]:
            raise UserError(
                f"{target.label}: nothing in its command or variables is a path in "
                f"{self.repository.top}: both commits would be the same; name the program there "
                "under `programs:`, or the right `track: {repository: PATH}`"
            )
        program = order.get("program")
        if program:
            program["files"] = {name: there(path) for name, path in program["files"].items()}
        folder = self.run_folder(planned)
        shutil.rmtree(folder, ignore_errors=True)
        order["folder"] = str(folder.resolve())
        order["argv"], order["env"] = argv, env
        order["prologue"] = list(map(there, order["prologue"]))
        return folder / ORDER, write_order(folder / ORDER, order)
