"""Campaigns: experiments on a site, their runs and the order of these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scalesweep.config.campaign_keys import (
    CampaignKeys,
    ControlKeys,
    HistorySettings,
    Sites,
    TrackKeys,
)
from scalesweep.config.command_template import program_named
from scalesweep.config.derived_metrics import check_same
from scalesweep.config.executables import Programs, named_programs
from scalesweep.config.experiment import Experiment, expand_experiment, variables_of
from scalesweep.config.models import read
from scalesweep.config.points import varying_parameters
from scalesweep.config.repeats import Run, runs_of
from scalesweep.config.run_order import arranged, control_repeats
from scalesweep.config.several_benchmarks import check_parts, parts
from scalesweep.config.site import Site, load_site
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.files import digest_of
from scalesweep.core.plan_format import TARGET_EFFICIENCY
from scalesweep.core.profilers import NOEXCHANGE, NONE

CONTROL = "control"  # name of the experiment that the control point is


@dataclass(frozen=True)
class Campaign:
    """A campaign file, checked and expanded; ``budget_node_hours`` is None without a budget.

    ``programs``: paths of the users' programs by the names in commands. ``seed``: of the order in
    which runs are started, None where it is that of the file. The control comes last.
    ``accept_stale``: experiments whose runs count whatever their records are of.
    ``imported``: what an importer says of the runs that it left out. ``history``: where finished
    points are kept as a session; None: nowhere. ``track``: the repository that is measured.
    ``control``: what the file says of the control point.
    """

    name: str
    description: str
    file: Path
    site: Site
    results: Path
    experiments: tuple[Experiment, ...]
    digest: str
    programs: Programs
    budget_node_hours: float | None
    seed: int | None
    control: ControlKeys | None = None
    accept_stale: frozenset[str] = frozenset()
    target_efficiency: float = TARGET_EFFICIENCY  # as a share
    imported: Mapping[str, Any] = field(default_factory=dict)
    consumer: str | None = None  # results folder of training that reading is held against
    history: HistorySettings | None = None
    track: TrackKeys = field(default_factory=TrackKeys)

    @property
    def runs_folder(self) -> Path:
        """Where the runs of this campaign's site live."""
        return self.results / "runs" / self.site.name

    def unique_runs(self) -> dict[str, tuple[Experiment, Run]]:
        """Every run once, with the first experiment that asks for it, in plan order.

        Profiled runs come last: what is measured comes first.
        """
        unique: dict[str, tuple[Experiment, Run]] = {}
        for kind in ("runs", "profiles"):
            for experiment in self.experiments:
                for run in getattr(experiment, kind):
                    unique.setdefault(run.run_id, (experiment, run))
        return unique

    def _stages(self) -> dict[str, int]:
        """Runs that wait for others, by how many counts come before; none without ``stop``."""
        stages: dict[str, int] = {}
        for experiment in self.experiments:
            for run_id, stage in experiment.stages().items():
                stages[run_id] = min(stage, stages.get(run_id, stage))
        if stages:
            for experiment in self.experiments:
                for run in () if experiment.stop else experiment.runs:
                    stages.pop(run.run_id, None)
        return stages

    def positions(self) -> dict[str, int]:
        """Position of each run in the order of start, from 1.

        Runs without exchange are compared with the measured ones, so they are in the same blocks.
        """
        control = [run.run_id for e in self.experiments if e.control for run in e.runs]
        apart = set(control)
        repeats: dict[str, int] = {}
        profiled: list[str] = []
        for run_id, (_, run) in self.unique_runs().items():
            if run.profile not in (NONE, NOEXCHANGE):
                profiled.append(run_id)
            elif run_id not in apart:
                repeats[run_id] = run.repeat
        order = arranged(repeats, self.seed, control, profiled, self._stages())
        return {run_id: place for place, run_id in enumerate(order, 1)}


def by_experiment(
    runs: Mapping[str, tuple[Experiment, Run]],
) -> Sequence[tuple[Experiment, Sequence[str]]]:
    """Ids of runs by their experiment."""
    grouped: dict[int, tuple[Experiment, list[str]]] = {}
    for run_id, (experiment, _) in runs.items():
        grouped.setdefault(id(experiment), (experiment, []))[1].append(run_id)
    return list(grouped.values())


def load_campaign(
    path: Path,
    site: str | None = None,
    results: str | None = None,
    cluster: bool = False,
    profile: str | None = None,
    history: str | None = None,
    baseline: str | None = None,
) -> Campaign:
    """Read, check and expand a campaign file.

    ``site``, ``results``, ``history`` (the folder) and ``baseline`` override the file's own,
    ``profile`` that of every experiment.
    ``cluster`` is whether jobs go to Slurm: it picks between the sites of a file that names one
    for each. Raises UserError naming file, key and allowed values.
    """
    content = load_yaml(path)
    keys = read(CampaignKeys, content, path)
    site_name = site or _site_name(keys.site, cluster, f"{path}: site")
    machine = load_site(site_name, f"{path}: site")
    if keys.concurrent_runs:
        machine = machine.model_copy(update={"concurrent_runs": 1})
    experiments = _experiments(keys, machine, path, profile)
    if keys.control:
        control = control_experiment(experiments, keys.control, f"{path}: control")
        experiments = (*experiments, control)
    programs = named_programs({**machine.programs, **keys.programs})
    unknown: dict[str, str] = {}
    for experiment in experiments:
        where = f"{path}: experiments.{experiment.name}"
        unknown = {**_without_path(experiment, machine, programs, where), **unknown}
    # What tables say of metrics is in the files of the benchmarks.
    files = sorted({experiment.benchmark.folder / "benchmark.yaml" for experiment in experiments})
    made_of = [content, *(file.read_text() for file in files)]
    digest = digest_of([*made_of, site_name, *([] if profile is None else [profile])])
    stated = {"folder": history and Path(history).expanduser(), "baseline": baseline}
    stated = {key: value for key, value in stated.items() if value is not None}
    kept = keys.history and keys.history.model_copy(update=stated)
    if kept is None and history:
        kept = HistorySettings.model_validate(stated)
    return Campaign(
        name=keys.campaign,
        description=keys.description,
        file=path,
        site=machine,
        results=Path(results or keys.results),
        experiments=experiments,
        digest=digest,
        programs=Programs(programs, unknown),
        budget_node_hours=keys.budget.node_hours if keys.budget else None,
        seed=keys.order.seed,
        control=keys.control,
        accept_stale=frozenset(keys.accept_stale),
        target_efficiency=keys.target_efficiency,
        imported=keys.imported,
        consumer=keys.consumer,
        history=kept,
        track=keys.track,
    )


def _experiments(
    keys: CampaignKeys, machine: Site, path: Path, profile: str | None
) -> tuple[Experiment, ...]:
    """The experiments of a file, those of several benchmarks in parts. Raises UserError with the
    first mistake of each experiment."""
    specs = list(parts(keys.experiments, path))
    variables: dict[str, set[str]] = {}  # that experiments set, by benchmark
    for *_, spec in specs:
        variables.setdefault(spec.benchmark, set()).update(variables_of(spec))
    made: list[Experiment] = []
    mistakes: dict[str, str] = {}
    for name, whole, spec in specs:
        where, known = f"{path}: experiments.{whole or name}", variables[spec.benchmark]
        try:
            part = expand_experiment(name, spec, machine, known, where, path.parent, profile)
            made.append(replace(part, part_of=whole))
        except UserError as error:
            of = f" ({spec.benchmark})" if whole and spec.benchmark not in str(error) else ""
            mistakes.setdefault(whole or name, f"{error}{of}")
    if mistakes:
        raise UserError(*mistakes.values())
    check_parts(made, keys.experiments, path)
    stated = [(e.name, e.benchmark.name, e.derived) for e in made]
    check_same(stated, f"{path}: experiments")
    for name in keys.accept_stale:
        if name not in keys.experiments:
            allowed = choices(name, keys.experiments)
            raise UserError(f"{path}: accept_stale: {name!r} is no experiment; {allowed}")
    if profile not in (None, NONE) and not any(experiment.profiles for experiment in made):
        raise UserError(
            f"--config profile={profile}: no benchmark of this campaign can be run so "
            "(framework, noexchange in benchmark.yaml)"
        )
    # Experiments that share runs with one whose runs are alone are like that one.
    alone = {run.run_id for e in made if e.alone for run in e.runs}
    return tuple(replace(e, alone=not alone.isdisjoint(run.run_id for run in e.runs)) for e in made)


def _without_path(
    experiment: Experiment, site: Site, programs: Mapping[str, str], where: str
) -> dict[str, str]:
    """Programs that an experiment starts and that have no path, each with what to do, in words.
    What only plans can do without."""
    benchmark = experiment.benchmark
    needed = benchmark.command.programs(experiment.points) if site.launch is not None else set()
    if site.launch is not None and (python := program_named(benchmark.python or "")):
        needed.add(python)
    return {
        name: f"{where}: benchmark {benchmark.name} starts the program '{name}', whose path is "
        f"unknown; add to {site.file}, or to this file, 'programs: {{{name}: /path}}'"
        for name in sorted(needed - programs.keys())
    }


def with_repeats(campaign: Campaign, counts: Mapping[str, Sequence[int]]) -> Campaign:
    """The campaign with other numbers of repeats: of every point of these experiments.

    The control point is measured as often as it takes between all of them.
    """
    if not counts:
        return campaign
    experiments = []
    for experiment in campaign.experiments:
        if experiment.name in counts:
            benchmark = experiment.benchmark
            points = {benchmark.identity_of(point): point for point in experiment.points}
            runs = runs_of(benchmark, points, map(range, counts[experiment.name]))
            experiment = replace(experiment, runs=runs)  # noqa: PLW2901
        if not experiment.control:
            experiments.append(experiment)
    if campaign.control is not None:
        where = f"{campaign.file}: control"
        experiments.append(control_experiment(experiments, campaign.control, where))
    return replace(campaign, experiments=tuple(experiments))


def _site_name(site: str | Sites, cluster: bool, where: str) -> str:
    """The site of a campaign that names one, or one for each way to run."""
    if isinstance(site, str):
        return site
    for key, named in (("local", site.local), ("slurm", site.slurm)):
        if named:  # told also of the one that this call does not use
            load_site(named, f"{where}.{key}")
    key, other, way = ("slurm", "local", "with") if cluster else ("local", "slurm", "without")
    name: str | None = getattr(site, key)
    if name is None:
        raise UserError(
            f"{where}: names no site {way} --profile slurm; add '{key}: NAME' next to "
            f"'{other}: {getattr(site, other)}', or name one (--config site=NAME; of scalesweep: "
            "--site NAME)"
        )
    return name


def control_experiment(
    experiments: Sequence[Experiment], spec: ControlKeys, where: str
) -> Experiment:
    """The control point as an experiment of its own, with as many repeats as the others need.

    ``spec`` is what the campaign file says of it, ``where`` what messages name. Raises UserError if
    no experiment has such a point, or several fit.
    """
    by_name = {experiment.name: experiment for experiment in experiments}
    if CONTROL in by_name:
        raise UserError(f"{where}: experiments.{CONTROL}: this name is reserved for it")
    source = by_name.get(spec.experiment)
    if source is None:
        raise UserError(
            f"{where}.experiment: {spec.experiment!r} is not an experiment of this campaign; "
            + choices(spec.experiment, by_name)
        )
    benchmark = source.benchmark
    wanted = benchmark.normalised(spec.point, f"{where}.point")
    points = [point for point in source.points if point.items() >= wanted.items()]
    if len(points) != 1:
        differing = ", ".join(varying_parameters(benchmark, points or source.points))
        raise UserError(
            f"{where}.point: {len(points)} points of {source.name} fit; it must be one: set values "
            f"of {differing or 'none'} that one of its points has"
        )
    (point,) = points
    # The control's runs do not become fewer while others are left out.
    others: set[str] = set().union(*(experiment.left_out for experiment in experiments))
    runs = {run.run_id: run for experiment in experiments for run in experiment.runs}
    own = {benchmark.run_id(point, repeat) for repeat in range(len(runs))} & runs.keys()
    shared = max((runs[run_id].repeat + 1 for run_id in own), default=0)
    repeats = control_repeats(len(others | (runs.keys() - own)), spec.every, shared)
    varying = ", ".join(f"{name} {point[name]}" for name in source.axes if name in point)
    return replace(
        source,
        name=CONTROL,
        description=f"A point of {source.name}{varying and f' ({varying})'}, measured "
        "repeatedly between all other runs: what changes here is the machine.",
        scaling="none",
        axes=(),
        linked=(),
        points=(point,),
        runs=runs_of(benchmark, {benchmark.identity_of(point): point}, [range(repeats)]),
        profiles=(),
        excluded=(),
        until_precise=None,
        control=True,
        predict=(),
        stop=None,
        left_out=frozenset(),
        part_of="",
        rules=(),
    )
