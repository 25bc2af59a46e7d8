"""Campaigns: experiments on a site, their runs and the order of these."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from scalesweep.config.campaign_keys import CampaignKeys, ControlKeys, HistorySettings
from scalesweep.config.experiment import Experiment, expand_experiment
from scalesweep.config.models import read
from scalesweep.config.repeats import Run, runs_of
from scalesweep.config.several_benchmarks import check_parts, parts
from scalesweep.config.site import Site, load_site
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.files import digest_of
from scalesweep.core.profilers import NONE

CONTROL = "control"  # name of the experiment that the control point is


@dataclass(frozen=True)
class Campaign:
    """A campaign file, checked and expanded; ``keys``: as it is written. ``programs``: paths by the
    names in commands. The control is the last experiment. ``history``: None: nothing is kept."""

    name: str
    keys: CampaignKeys
    file: Path
    site: Site
    results: Path
    experiments: tuple[Experiment, ...]
    digest: str
    programs: Mapping[str, str]
    history: HistorySettings | None = None

    @property
    def runs_folder(self) -> Path:
        """Where the runs of this campaign's site live."""
        return self.results / "runs" / self.site.name

    @cached_property
    def pathless(self) -> dict[str, str]:
        """Programs that runs start and that have no path, each with what to do, in words."""
        return {
            name: f"{self.file}: experiments.{each.name}: benchmark {each.benchmark.name} starts "
            f"the program '{name}', whose path is unknown; add to {self.site.file}, or to this "
            f"file, 'programs: {{{name}: /path}}'"
            for each in (self.experiments if self.site.launch else ())
            for name in sorted(each.benchmark.command.programs(each.points) - self.programs.keys())
        }

    def unique_runs(self) -> dict[str, tuple[Experiment, Run]]:
        """Every run once, with its first experiment, in plan order; profiled ones last."""
        unique: dict[str, tuple[Experiment, Run]] = {}
        for kind in ("runs", "profiles"):
            for experiment in self.experiments:
                for run in getattr(experiment, kind):
                    unique.setdefault(run.run_id, (experiment, run))
        return unique


def load_campaign(
    path: Path,
    site: str | None = None,
    results: str | None = None,
    cluster: bool = False,
    profile: str | None = None,
    history: str | None = None,
    baseline: str | None = None,
) -> Campaign:
    """Read, check and expand a campaign file. ``site``, ``results``, ``history`` (the folder) and
    ``baseline`` override its own, ``profile`` that of every experiment. ``cluster``: jobs go to
    Slurm, on the site for that. Raises UserError naming file, key and allowed values."""
    content = load_yaml(path)
    keys = read(CampaignKeys, content, path)
    named = (keys.site.slurm if cluster else None) or keys.site.local
    machine = load_site(site or named, f"{path}: site")
    if keys.concurrent_runs:
        machine = machine.model_copy(update={"concurrent_runs": 1})
    experiments = _experiments(keys, machine, path, profile)
    # What tables say of metrics is in the files of the benchmarks.
    files = sorted({experiment.benchmark.folder / "benchmark.yaml" for experiment in experiments})
    made_of = [content, *(file.read_text() for file in files)]
    stated = {"folder": history and Path(history).expanduser(), "baseline": baseline}
    stated = {key: value for key, value in stated.items() if value is not None}
    kept = keys.history or (HistorySettings.model_construct() if history else None)
    return Campaign(
        name=keys.campaign,
        keys=keys,
        file=path,
        site=machine,
        results=Path(results or keys.results),
        experiments=with_control(experiments, keys, path),
        digest=digest_of([*made_of, machine.name, *([] if profile is None else [profile])]),
        programs={**machine.programs, **keys.programs},
        history=kept and kept.model_copy(update=stated),
    )


def _experiments(
    keys: CampaignKeys, machine: Site, path: Path, profile: str | None
) -> tuple[Experiment, ...]:
    """The experiments of a file, those of several benchmarks in parts. Raises UserError."""
    made: list[Experiment] = []
    mistakes: dict[str, list[str]] = {}
    for name, whole, spec in parts(keys.experiments, path):
        where = f"{path}: experiments.{whole or name}"
        try:
            part = expand_experiment(name, spec, machine, where, path.parent, profile)
            made.append(replace(part, part_of=whole))
        except UserError as error:
            mistakes.setdefault(where, error.messages)
    if mistakes:
        raise UserError(*chain(*mistakes.values()))
    check_parts(made, keys.experiments, path)
    for name in keys.accept_stale:
        if name not in keys.experiments:
            raise UserError(f"{path}: accept_stale: {name!r}: {choices(name, keys.experiments)}")
    if profile not in (None, NONE) and not any(experiment.profiles for experiment in made):
        raise UserError(f"--config profile={profile}: no benchmark of this campaign can be run so")
    # Experiments that share runs with one whose runs are alone are like that one.
    alone = {run.run_id for e in made if e.alone for run in e.runs}
    return tuple(replace(e, alone=not alone.isdisjoint(run.run_id for run in e.runs)) for e in made)


def with_control(
    experiments: Sequence[Experiment], keys: CampaignKeys, path: Path
) -> tuple[Experiment, ...]:
    """Experiments, and the control point as one of its own, with as many repeats as they need."""
    if keys.control is None:
        return tuple(experiments)
    control = _control(experiments, keys.control, f"{path}: control")
    benchmark, point = control.benchmark, control.points[0]
    ids = {run.run_id for experiment in experiments for run in experiment.runs}
    others = ids - {benchmark.run_id(point, repeat) for repeat in range(len(ids))}
    repeats = range(1 + math.ceil(len(others) / keys.control.every))
    return (*experiments, replace(control, runs=runs_of(benchmark, [point], [repeats])))


def _control(experiments: Sequence[Experiment], spec: ControlKeys, where: str) -> Experiment:
    """The control point as an experiment. Raises UserError if not one point fits."""
    by_name = {experiment.name: experiment for experiment in experiments}
    if CONTROL in by_name:
        raise UserError(f"{where}: experiments.{CONTROL}: this name is reserved for it")
    if (source := by_name.get(spec.experiment)) is None:
        allowed = choices(spec.experiment, by_name)
        raise UserError(f"{where}.experiment: {spec.experiment!r}: {allowed}")
    wanted = source.benchmark.normalised(spec.point, f"{where}.point")
    points = [point for point in source.points if point.items() >= wanted.items()]
    if len(points) != 1:
        raise UserError(
            f"{where}.point: {len(points)} points of {source.name} fit; set values of "
            f"{', '.join(source.axes) or 'none'} that one of its points has"
        )
    said = f"A point of {source.name}, measured between all other runs: only the machine changes."
    plain = {"description": said, "scaling": "none", "repeats": 1, "predict": (), "exclude": (),
             "stop_below": None}  # fmt: skip
    return replace(
        source, name=CONTROL, control=True, keys=source.keys.model_copy(update=plain), axes=(),
        linked=(), points=tuple(points), profiles=(), excluded=(), part_of="",
    )  # fmt: skip
