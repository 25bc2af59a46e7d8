"""Campaigns: from a YAML grid to points and runs."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.executables import named_programs
from scalesweep.config.experiment_checks import (
    check_constraint,
    check_metric,
    check_own_launch,
    check_predicted,
    check_programs,
    check_variables,
)
from scalesweep.config.grid import (
    MAX_POINTS,
    Grid,
    axis_values,
    check_overlap,
    check_points,
    check_scaling,
    exclusions,
    extra_points,
    linked_entries,
    varying_parameters,
)
from scalesweep.config.history_settings import HistorySettings, Track, read_history, read_track
from scalesweep.config.profiled_runs import ASKED, check_any, profiled_runs
from scalesweep.config.repeats import Run, UntilPrecise, planned_runs, repeated, until_precise
from scalesweep.config.reserved_names import check_varying
from scalesweep.config.run_order import arranged, control_repeats
from scalesweep.config.site import Site, load_site
from scalesweep.config.spend import Spend, read_budget, read_spend
from scalesweep.config.stop_rule import StopRule, stop_rule
from scalesweep.config.yaml_loader import check_schema, load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.files import digest_of
from scalesweep.core.profilers import NOEXCHANGE, NONE

CONTROL = "control"  # name of the experiment that the control point is
CONTROL_EVERY = 10
DEFAULT_SEED = 0


@dataclass(frozen=True)
class Experiment:
    """A benchmark with axes, expanded: its points, runs, and what was excluded and why.

    ``profiles`` are runs of the points once more, under a profiler.

    ``memory_gb_per_rank`` is in GiB; ``constraint`` is a Slurm feature expression that may name
    parameters in braces. ``control`` is set for the control point, repeated between all others.
    ``predict``: counts of what it scales over whose results are to be predicted.
    With ``until_precise`` each point has as many ``runs`` as are planned so far: those that are
    needed in any case, until ``planning.repeats`` has looked at what they have measured.
    With ``stop`` smaller counts are measured before larger ones, which ``planning.stops`` may leave
    out: ``left_out`` are the ids of the runs that it has.
    """

    name: str
    benchmark: Benchmark
    description: str
    scaling: str
    axes: tuple[str, ...]
    linked: tuple[str, ...]
    points: tuple[Mapping[str, Any], ...]
    runs: tuple[Run, ...]
    profiles: tuple[Run, ...]
    excluded: tuple[tuple[Mapping[str, Any], str], ...]
    time_limit_minutes: float
    expected_minutes: float | None
    memory_gb_per_rank: float | None
    constraint: str | None
    main_metric: str | None
    until_precise: UntilPrecise | None = None
    control: bool = False
    predict: tuple[int, ...] = ()
    stop: StopRule | None = None
    left_out: frozenset[str] = frozenset()

    def stages(self) -> dict[str, int]:
        """Of an experiment with ``stop``: which count each run is of, from 0 for the smallest."""
        if self.stop is None:
            return {}
        counts = {run.run_id: self.benchmark.scale_of(run.point) for run in self.runs}
        places = {count: place for place, count in enumerate(sorted(set(counts.values())))}
        return {run_id: places[count] for run_id, count in counts.items()}


@dataclass(frozen=True)
class Campaign:
    """A campaign file, checked and expanded; ``budget_node_hours`` is None without a budget.

    ``programs``: paths of the users' programs by the names in commands. ``seed``: of the order in
    which runs are started, None where it is that of the file. The control comes last. After
    ``stop_after`` identical failures in a row no more runs are started (None: all are).
    ``accept_stale``: what may differ between a record and the plan (``agreement.CAUSES``).
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
    programs: Mapping[str, str]
    budget_node_hours: float | None
    stop_after: int | None
    seed: int | None
    control: Mapping[str, Any] | None = None
    accept_stale: frozenset[str] = frozenset()
    canary: bool = False  # whether runs are between two looks at their machine
    imported: Mapping[str, Any] = field(default_factory=dict)
    history: HistorySettings | None = None
    track: Track = field(default_factory=Track)
    # A budget that is spent in rounds; the time limits in seconds of the runs that it pays for,
    # where these are shorter than their experiment's; the campaign with all runs of its file.
    spend: Spend | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    whole: "Campaign | None" = None

    def limit_s(self, experiment: Experiment, run_id: str) -> float:
        """The time limit of a run's program in seconds."""
        return min(experiment.time_limit_minutes * 60, self.limits.get(run_id, math.inf))

    @property
    def runs_folder(self) -> Path:
        """Where the runs of this campaign's site live."""
        return self.results / "runs" / self.site.name

    def unique_runs(self) -> dict[str, tuple[Experiment, Run]]:
        """Every run once, with the first experiment that asks for it, in plan order.

        Profiled runs come last: what is measured comes first.
        """
        found: dict[str, tuple[Experiment, Run]] = {}
        for experiment in self.experiments:
            for run in experiment.runs:
                found.setdefault(run.run_id, (experiment, run))
        for experiment in self.experiments:
            for run in experiment.profiles:
                found.setdefault(run.run_id, (experiment, run))
        return found

    def _stages(self) -> dict[str, int]:
        """Runs that wait for others, by how many counts come before; none without ``stop``."""
        found: dict[str, int] = {}
        for experiment in self.experiments:
            for run_id, stage in experiment.stages().items():
                found[run_id] = min(stage, found.get(run_id, stage))
        if found:
            for experiment in self.experiments:
                for run in () if experiment.stop else experiment.runs:
                    found.pop(run.run_id, None)
        return found

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
    check_schema(content, "campaign", path)
    site_name = site or _site_name(content["site"], cluster, f"{path}: site")
    machine = load_site(site_name, f"{path}: site")
    variables: dict[str, set[str]] = {}  # that experiments set, by benchmark
    for spec in content["experiments"].values():
        variables.setdefault(spec["benchmark"], set()).update(spec.get("env", {}))
    experiments = tuple(
        _experiment(
            name,
            spec if profile is None else {**spec, "profile": profile, ASKED: True},
            machine,
            variables[spec["benchmark"]],
            f"{path}: experiments.{name}",
            path.parent,
        )
        for name, spec in content["experiments"].items()
    )
    _check_collisions(experiments, path)
    check_any(profile, [experiment.profiles for experiment in experiments])
    if "control" in content:
        control = _control(experiments, content["control"], f"{path}: control")
        experiments = (*experiments, control)
    programs = named_programs({**machine.programs, **content.get("programs", {})})
    for experiment in experiments:
        missing = f"{path}: experiments.{experiment.name}"
        check_programs(experiment.benchmark, experiment.points, machine, programs, missing)
        check_own_launch(experiment.benchmark, experiment.points, machine, missing)
    digest = digest_of([content, site_name, *([] if profile is None else [profile])])
    return Campaign(
        name=content["campaign"],
        description=content.get("description", ""),
        file=path,
        site=machine,
        results=Path(results or content.get("results", "results")),
        experiments=experiments,
        digest=digest,
        programs=programs,
        budget_node_hours=read_budget(content),
        stop_after=content.get("stop_after"),
        seed=_seed(content.get("order", {})),
        control=content.get("control"),
        canary=content.get("canary", machine.canary) and machine.launch is not None,
        accept_stale=frozenset(content.get("accept_stale", [])),
        imported=content.get("imported", {}),
        history=read_history(content, history, baseline),
        spend=read_spend(content, f"{path}: spend"),
        track=read_track(content),
    )


def with_repeats(campaign: Campaign, counts: Mapping[str, Sequence[int]]) -> Campaign:
    """The campaign with other numbers of repeats: of every point of these experiments.

    The control point is measured as often as it takes between all of them.
    """
    experiments = []
    for experiment in campaign.experiments:
        if experiment.name in counts:
            benchmark = experiment.benchmark
            points = {benchmark.identity_of(point): point for point in experiment.points}
            runs = repeated(benchmark, points, counts[experiment.name])
            experiment = replace(experiment, runs=runs)  # noqa: PLW2901
        if not experiment.control:
            experiments.append(experiment)
    if campaign.control is not None:
        where = f"{campaign.file}: control"
        experiments.append(_control(tuple(experiments), campaign.control, where))
    return replace(campaign, experiments=tuple(experiments))


def _site_name(site: str | Mapping[str, str], cluster: bool, where: str) -> str:
    """The site of a campaign that names one, or one for each way to run."""
    if isinstance(site, str):
        return site
    key, other, way = ("slurm", "local", "with") if cluster else ("local", "slurm", "without")
    if key not in site:
        raise UserError(
            f"{where}: names no site {way} --profile slurm; add '{key}: NAME' next to "
            f"'{other}: {site[other]}', or name one with --config site=NAME"
        )
    return site[key]


def _check_collisions(experiments: tuple[Experiment, ...], path: Path) -> None:
    seen: dict[str, Run] = {}
    for experiment in experiments:
        for run in experiment.runs:
            other = seen.setdefault(run.run_id, run)
            if other is not run and (other.point, other.repeat) != (run.point, run.repeat):
                raise UserError(f"{path}: two points share the id {run.run_id}: rename a value")


def _experiment(
    name: str, spec: Mapping[str, Any], site: Site, variables: Set[str], where: str, folder: Path
) -> Experiment:
    """``variables``: those that any experiment of the campaign with this benchmark sets.

    ``folder``: that of the campaign's file, where an import leaves the benchmarks that it made.
    """
    benchmark = load_benchmark(spec["benchmark"], f"{where}.benchmark", beside=folder)
    axes = {
        key: axis_values(benchmark, key, value, f"{where}.axes.{key}")
        for key, value in spec.get("axes", {}).items()
    }
    linked = linked_entries(benchmark, spec.get("linked", []), f"{where}.linked")
    fixed = {
        key: benchmark.parameter(key, f"{where}.fixed").normalise(value, f"{where}.fixed")
        for key, value in spec.get("fixed", {}).items()
    }
    check_overlap(axes, linked, fixed, where)
    env = check_variables(benchmark, spec.get("env", {}), f"{where}.env")
    # No grid is over variables: what follows from this file knows the benchmark's own parameters.
    own, benchmark = benchmark, benchmark.with_variables(variables)
    grid = Grid({**benchmark.defaults, **fixed, **env}, axes, linked)
    if len(grid) > MAX_POINTS:
        raise UserError(f"{where}: the grid has more than {MAX_POINTS} points")

    rules = exclusions(own, spec.get("exclude", []), f"{where}.exclude")
    extras = list(extra_points(own, spec.get("extra", []), grid, f"{where}.extra"))
    by_identity: dict[str, Mapping[str, Any]] = {}
    excluded: list[tuple[Mapping[str, Any], str]] = []
    for point, identity in zip(grid.points(), grid.identities(benchmark), strict=True):
        reason = next((why for rule, why in rules if rule(point)), None) if rules else None
        if reason is None:
            by_identity.setdefault(identity, point)
        else:
            excluded.append((point, reason))
    for extra in extras:
        by_identity.setdefault(benchmark.identity_of(extra), extra)
    if not by_identity:
        raise UserError(f"{where}: no point is left: 'exclude' removes all {len(excluded)}")
    points = tuple(by_identity.values())
    check_points(benchmark, site, grid, points, extras, where)

    scaling = spec.get("scaling", "none")
    varying = varying_parameters(benchmark, points)
    check_varying(varying, where)
    check_scaling(benchmark, scaling, varying, points, where)
    runs = planned_runs(benchmark, by_identity, spec, linked, where)
    return Experiment(
        name=name,
        benchmark=benchmark,
        description=spec.get("description", ""),
        scaling=scaling,
        axes=varying,
        linked=tuple(linked[0]) if linked else (),
        points=points,
        runs=runs,
        profiles=profiled_runs(benchmark, spec, points, runs, where),
        excluded=tuple(excluded),
        time_limit_minutes=float(spec.get("time_limit_minutes", site.time_limit_minutes)),
        expected_minutes=spec.get("expected_minutes"),
        memory_gb_per_rank=spec.get("memory_gb_per_rank"),
        constraint=check_constraint(own, spec.get("constraint"), f"{where}.constraint"),
        main_metric=check_metric(benchmark, spec.get("main_metric"), f"{where}.main_metric"),
        until_precise=until_precise(benchmark, spec.get("repeats"), f"{where}.repeats"),
        predict=check_predicted(spec, f"{where}.predict"),
        stop=stop_rule(benchmark, spec, f"{where}.stop"),
    )


def _seed(order: str | Mapping[str, int]) -> int | None:
    """Seed of the order of runs; None for ``as_written``."""
    return None if isinstance(order, str) else order.get("seed", DEFAULT_SEED)


def _control(
    experiments: tuple[Experiment, ...], spec: Mapping[str, Any], where: str
) -> Experiment:
    """The control point as an experiment of its own, with as many repeats as the others need."""
    by_name = {experiment.name: experiment for experiment in experiments}
    if CONTROL in by_name:
        raise UserError(f"{where}: experiments.{CONTROL}: this name is reserved for it")
    source = by_name.get(spec["experiment"])
    if source is None:
        raise UserError(
            f"{where}.experiment: {spec['experiment']!r} is not an experiment of this campaign; "
            + choices(spec["experiment"], by_name)
        )
    benchmark = source.benchmark
    point = _point_of(source, spec.get("point", {}), f"{where}.point")
    others: set[str] = set()
    shared = 0
    for experiment in experiments:
        # The control's runs do not become fewer while they are measured.
        others |= experiment.left_out
        for run in experiment.runs:
            if experiment.benchmark.name == benchmark.name and run.point == point:
                shared = max(shared, run.repeat + 1)
            else:
                others.add(run.run_id)
    repeats = control_repeats(len(others), spec.get("every", CONTROL_EVERY), shared)
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
        runs=repeated(benchmark, {benchmark.identity_of(point): point}, [repeats]),
        profiles=(),
        excluded=(),
        until_precise=None,
        control=True,
        predict=(),
        stop=None,
        left_out=frozenset(),
    )


def _point_of(experiment: Experiment, given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The one point of an experiment that has these values."""
    benchmark = experiment.benchmark
    wanted = {
        name: benchmark.parameter(name, where).normalise(value, where)
        for name, value in given.items()
    }
    points = [
        point
        for point in experiment.points
        if all(point[name] == value for name, value in wanted.items())
    ]
    if not points:
        named = ", ".join(f"{name} {value}" for name, value in wanted.items())
        raise UserError(f"{where}: no point of {experiment.name} has {named}")
    if len(points) > 1:
        names = [name for name in varying_parameters(benchmark, points) if name in points[0]]
        raise UserError(
            f"{where}: {len(points)} points of {experiment.name} fit; set also {', '.join(names)}"
        )
    return points[0]
