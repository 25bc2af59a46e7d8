"""Experiments: from axes in a YAML file to points and runs."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.campaign_keys import ExperimentKeys, UntilPrecise
from scalesweep.config.derived_metrics import DerivedMetric, derived_metrics
from scalesweep.config.derived_parameters import (
    Derivation,
    check_same,
    derived_parameters,
)
from scalesweep.config.experiment_checks import (
    check_constraint,
    check_main_metric,
    check_metric,
    check_predicted,
    check_variables,
)
from scalesweep.config.grid import (
    MOST_POINTS,
    Point,
    Rule,
    axis_values,
    check_overlap,
    check_points,
    check_values,
    exclusions,
    extra_points,
    grid_points,
    impossible_combinations,
    linked_entries,
    varying_parameters,
)
from scalesweep.config.memory import too_large
from scalesweep.config.profiled_runs import profiled_runs
from scalesweep.config.repeats import (
    Run,
    listed_points,
    planned_runs,
    until_precise,
)
from scalesweep.config.reserved_names import check_varying
from scalesweep.config.scaling_check import check_scaling
from scalesweep.config.site import Site
from scalesweep.config.stop_rule import StopRule, stop_rule
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression


@dataclass(frozen=True)
class Experiment:
    """A benchmark with axes, expanded: its points, runs, and what was excluded and why.

    ``profiles`` are runs of the points once more, under a profiler.

    ``memory_gib_per_rank`` is in GiB; ``constraint`` is a Slurm feature expression that may name
    parameters in braces. ``control`` is set for the control point, repeated between all others.
    ``predict``: counts of what it scales over whose results are to be predicted.
    With ``until_precise`` each point has as many ``runs`` as are planned so far: those that are
    needed in any case, until ``adaptive.repeats`` has looked at what they have measured.
    With ``stop`` smaller counts are measured before larger ones, which ``adaptive.stops`` may leave
    out: ``left_out`` are the ids of the runs that it has.
    ``alone``: no run of it starts while another of its runs lasts (``concurrent_runs: 1``).
    ``derivation``: which parameters are worked out from others; they are none of ``axes``.
    ``rules``: what it excludes, whatever points it has.
    ``part_of``: the experiment of several benchmarks of which it is one; empty for all others.
    """

    name: str
    benchmark: Benchmark
    description: str
    scaling: str
    axes: tuple[str, ...]
    linked: tuple[str, ...]
    points: Sequence[Mapping[str, Any]]
    runs: Sequence[Run]
    profiles: tuple[Run, ...]
    excluded: tuple[tuple[Mapping[str, Any], str], ...]
    time_limit_minutes: float
    expected_minutes: float | None
    memory_gib_per_rank: float | None
    constraint: str | None
    main_metric: str | None
    until_precise: UntilPrecise | None = None
    control: bool = False
    predict: tuple[int, ...] = ()
    stop: StopRule | None = None
    derived: Mapping[str, DerivedMetric] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    alone: bool = False
    derivation: Derivation = field(default_factory=Derivation)
    part_of: str = ""
    rules: tuple[Expression, ...] = ()

    def stages(self) -> dict[str, int]:
        """Of an experiment with ``stop``: which count each run is of, from 0 for the smallest."""
        if self.stop is None:
            return {}
        counts = {run.run_id: self.benchmark.scale_of(run.point) for run in self.runs}
        places = {count: place for place, count in enumerate(sorted(set(counts.values())))}
        return {run_id: places[count] for run_id, count in counts.items()}


def expand_experiment(
    name: str,
    spec: ExperimentKeys,
    site: Site,
    variables: Set[str],
    where: str,
    folder: Path,
    profile: str | None = None,
) -> Experiment:
    """The experiment that a campaign file describes by ``spec``, checked and expanded.

    ``variables``: those that any experiment of the campaign with this benchmark sets.
    ``folder``: that of the campaign's file, where an import leaves the benchmarks that it made.
    ``profile``: the kind of profile that --config asks of all. ``where`` is what messages name.
    Raises UserError naming key and allowed values.
    """
    own = load_benchmark(spec.benchmark, f"{where}.benchmark", beside=folder)
    env = check_variables(own, spec, where)
    own, derivation = derived_parameters(own.scaled_over(spec.scale, f"{where}.scale"), spec, where)
    # What follows from the benchmark's file knows its own parameters only.
    benchmark = own.with_variables(variables)
    axes = {
        key: axis_values(benchmark, key, value, f"{where}.axes.{key}")
        for key, value in spec.axes.items()
    }
    linked = linked_entries(benchmark, spec.linked or (), f"{where}.linked")
    fixed = own.normalised(spec.fixed, f"{where}.fixed")
    grid_sets = {"axes": axes, "linked": linked[0] if linked else {}}
    check_overlap({**grid_sets, "fixed": fixed, "env": env}, where)
    base = {**benchmark.defaults, **fixed, **env}
    grid = [derivation.of(point) for point in grid_points(base, axes, linked, where)]
    extras = [
        derivation.of(extra)
        for extra in extra_points(benchmark, spec.extra, base, axes, linked, f"{where}.extra")
    ]
    for index, extra in enumerate(extras):
        if reason := derivation.broken(extra):
            raise UserError(f"{where}.extra[{index}]: {reason}")
    asked = exclusions(own, spec, where)
    rules: list[Rule] = [
        *(derivation.excluding(rule, rule.names, reason) for rule, reason in asked),
        derivation.broken,
        *(impossible_combinations(benchmark, axes, linked, derivation) if site.launch else ()),
    ]
    if (most := spec.skip_if_memory_exceeds) is not None:
        key = f"{where}.skip_if_memory_exceeds"
        rules.append(too_large(benchmark, site, most, spec.memory_gib_per_rank, key))
    listed = listed_points(spec, len(grid), where)
    if listed is None:
        points, excluded = _chosen_points(benchmark, grid, extras, rules, derivation, where)
    else:
        points, excluded = _listed_points(benchmark, grid, listed, rules, where), []
    every = tuple(points.values())
    _check_left(benchmark, axes, linked, every, excluded, where)
    check_points(benchmark, site, every, where)
    if benchmark.transformer:  # of every point that would take as long as all other checks
        benchmark.transformer.at(every[0], f"{where}: {benchmark.name}")

    scaling = spec.scaling
    varied = varying_parameters(benchmark, every)
    check_varying(varied, where)
    varying = tuple(name for name in varied if name not in derivation.derived)
    whole = [point for point in (*grid, *extras) if derivation.broken(point) is None]
    check_scaling(benchmark, scaling, varying, every, where, whole)
    derived = derived_metrics(benchmark, spec.metrics, f"{where}.metrics")
    check_main_metric(spec, derived, where)
    runs = planned_runs(benchmark, points, spec)
    return Experiment(
        name=name,
        benchmark=benchmark,
        description=spec.description,
        scaling=scaling,
        axes=varying,
        linked=tuple(linked[0]) if linked else (),
        points=every,
        runs=runs,
        profiles=profiled_runs(benchmark, spec.profile, profile, every, runs, where),
        excluded=tuple(excluded),
        time_limit_minutes=spec.time_limit_minutes or site.time_limit_minutes,
        expected_minutes=spec.expected_minutes,
        memory_gib_per_rank=spec.memory_gib_per_rank,
        constraint=check_constraint(own, spec.constraint, f"{where}.constraint"),
        main_metric=check_metric(benchmark, spec.main_metric, f"{where}.main_metric", derived),
        until_precise=until_precise(benchmark, spec.repeats, f"{where}.repeats"),
        predict=check_predicted(spec, f"{where}.predict"),
        stop=stop_rule(benchmark, spec, f"{where}.stop"),
        alone=spec.concurrent_runs is not None,
        derived=derived,
        derivation=derivation,
        rules=tuple(rule for rule, _ in asked),
    )


def _chosen_points(
    benchmark: Benchmark,
    grid: Sequence[Point],
    extras: Sequence[Point],
    rules: Sequence[Rule],
    derivation: Derivation,
    where: str,
) -> tuple[dict[str, Point], list[tuple[Point, str]]]:
    """The points of an experiment by their identities, and those that rules exclude, with the
    reason. Raises UserError for more than ``MOST_POINTS``."""
    points: dict[str, Point] = {}
    excluded: list[tuple[Point, str]] = []
    for point in grid:
        reason = next((why for rule in rules if (why := rule(point))), None)
        if reason is None:
            first = points.setdefault(benchmark.identity_of(point), point)
            check_same(first, point, benchmark, derivation.derived, where)
        else:
            excluded.append((point, reason))
    for extra in extras:
        points.setdefault(benchmark.identity_of(extra), extra)
    if len(points) > MOST_POINTS:
        raise UserError(
            f"{where}: has {len(points):,} points; at most {MOST_POINTS:,} are allowed: exclude "
            "some, or make several experiments"
        )
    return points, excluded


def _listed_points(
    benchmark: Benchmark,
    grid: Sequence[Point],
    listed: Sequence[bool],
    rules: Sequence[Rule],
    where: str,
) -> dict[str, Point]:
    """The combinations that the campaign lists, by their identities. Raises UserError."""
    there = list(compress(grid, listed))
    if why := next((why for point in there for rule in rules if (why := rule(point))), None):
        raise UserError(f"{where}: a point that 'repeats' lists cannot be: {why}")
    points = {benchmark.identity_of(point): point for point in there}
    if len(points) < len(there):
        raise UserError(f"{where}.linked: with a list of repeats each entry must be another point")
    return points


def _check_left(
    benchmark: Benchmark,
    axes: Mapping[str, list[Any]],
    linked: Sequence[Point],
    points: Sequence[Point],
    excluded: Sequence[tuple[Point, str]],
    where: str,
) -> None:
    """Raise UserError where no point is left, or none with a value that the campaign names."""
    reasons = {f"{benchmark.name}: {rule.reason}" for rule in benchmark.rules}
    refused = [point for point, reason in excluded if reason in reasons]
    check_values(benchmark, axes, linked, points, refused, where)
    if not points:
        why = "; ".join(dict.fromkeys(reason for _, reason in excluded))
        raise UserError(f"{where}: no point is left; all {len(excluded)} are excluded ({why})")
