"""Experiments: from axes in a YAML file to points and runs."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.combinations import (
    LeftOut,
    check_values,
    impossible_combinations,
    other_rules,
)
from scalesweep.config.derived_metrics import DerivedMetric, derived_metrics
from scalesweep.config.derived_parameters import (
    Derivation,
    DerivedGrid,
    check_extras,
    check_same,
    derived_parameters,
    requirements,
)
from scalesweep.config.experiment_checks import (
    check_constraint,
    check_main_metric,
    check_metric,
    check_predicted,
    check_variables,
)
from scalesweep.config.grid import (
    MAX_POINTS,
    Grid,
    GridPoints,
    axis_values,
    check_overlap,
    check_points,
    check_scaling,
    exclusions,
    extra_points,
    linked_entries,
    varying_parameters,
)
from scalesweep.config.memory_limit import too_large
from scalesweep.config.profiled_runs import profiled_runs
from scalesweep.config.repeats import (
    PlannedPoints,
    Run,
    UntilPrecise,
    listed_points,
    planned_runs,
    until_precise,
)
from scalesweep.config.reserved_names import check_varying
from scalesweep.config.site import Site
from scalesweep.config.stop_rule import StopRule, stop_rule
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.core.scaling_kinds import MODEL


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

    def stages(self) -> dict[str, int]:
        """Of an experiment with ``stop``: which count each run is of, from 0 for the smallest."""
        if self.stop is None:
            return {}
        counts = {run.run_id: self.benchmark.scale_of(run.point) for run in self.runs}
        places = {count: place for place, count in enumerate(sorted(set(counts.values())))}
        return {run_id: places[count] for run_id, count in counts.items()}


def expand_experiment(
    name: str, spec: Mapping[str, Any], site: Site, variables: Set[str], where: str, folder: Path
) -> Experiment:
    """The experiment that a campaign file describes by ``spec``, checked and expanded.

    ``variables``: those that any experiment of the campaign with this benchmark sets.
    ``folder``: that of the campaign's file, where an import leaves the benchmarks that it made.
    ``where`` is what messages name. Raises UserError naming key and allowed values.
    """
    own = load_benchmark(spec["benchmark"], f"{where}.benchmark", beside=folder)
    env = check_variables(own, spec, where)
    own, derivation = derived_parameters(
        own.scaled_over(spec.get("scale"), f"{where}.scale"), spec, where
    )
    # What follows from the benchmark's file knows its own parameters only.
    benchmark = own.with_variables(variables)
    axes = {
        key: axis_values(benchmark, key, value, f"{where}.axes.{key}")
        for key, value in spec.get("axes", {}).items()
    }
    linked = linked_entries(benchmark, spec.get("linked", []), f"{where}.linked")
    fixed = {
        key: own.parameter(key, f"{where}.fixed").normalise(value, f"{where}.fixed")
        for key, value in spec.get("fixed", {}).items()
    }
    grid_sets = {"axes": axes, "linked": linked[0] if linked else {}}
    check_overlap({**grid_sets, "fixed": fixed, "env": env}, where)
    base = {**benchmark.defaults, **fixed, **env}
    grid = (
        DerivedGrid(base, axes, linked, derivation)
        if derivation.derived
        else Grid(base, axes, linked)
    )
    if len(grid) > MAX_POINTS:
        raise UserError(f"{where}: the grid has more than {MAX_POINTS} points")

    asked = exclusions(own, spec.get("exclude", []), f"{where}.exclude")
    starts = site.launch is not None
    impossible = impossible_combinations(benchmark, grid) if starts else []
    rules: list[tuple[Expression, str] | LeftOut] = [
        *derivation.rules([*asked, *requirements(own, spec, where)]), *impossible,
        *too_large(benchmark, site, spec, where),
    ]  # fmt: skip
    extras = [
        derivation.of(extra)
        for extra in extra_points(benchmark, spec.get("extra", []), grid, f"{where}.extra")
    ]
    check_extras(derivation, extras, f"{where}.extra")
    listed = listed_points(spec, len(grid), where)
    planned, excluded = _planned_points(
        benchmark, grid, extras, rules, listed, derivation.derived, where
    )
    if listed is not None and len(set(planned.identities)) < len(planned.identities):
        raise UserError(f"{where}.linked: with a list of repeats each entry must be another point")
    points = planned.points
    if impossible:
        reasons = {reason for _, reason in impossible}
        refused = [point for point, reason in excluded if reason in reasons]
        check_values(benchmark, grid, points, refused, where)
    if not points:
        why = "; ".join(dict.fromkeys(reason for _, reason in excluded))
        raise UserError(f"{where}: no point is left; all {len(excluded)} are excluded ({why})")
    others = other_rules(benchmark, grid)
    check_points(benchmark, site, grid, points, extras, others, where)
    if benchmark.transformer:  # of every point that would take as long as all other checks
        benchmark.transformer.at(points[0], f"{where}: {benchmark.name}")

    scaling = spec.get("scaling", "none")
    # A few points of a grid tell as much as all of them.
    work = benchmark.scale_parameters | benchmark.work_parameters | {benchmark.scale}
    series = list(grid.distinct(work))
    few = [*grid.spread(), *series, *extras]
    part = bool(rules) or listed is not None
    every = varying_parameters(benchmark, points if part else few)
    check_varying(every, where)
    varying = tuple(name for name in every if name not in derivation.derived)
    whole = derivation.whole([*grid.points(), *extras]) if rules and scaling != "none" else []
    all_of_them = part or extras or scaling == MODEL
    check_scaling(benchmark, scaling, varying, points if all_of_them else series, where, whole)
    derived = derived_metrics(benchmark, spec.get("metrics", {}), f"{where}.metrics")
    check_main_metric(spec, derived, where)
    runs = planned_runs(benchmark, planned, spec)
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
        memory_gib_per_rank=spec.get("memory_gib_per_rank"),
        constraint=check_constraint(own, spec.get("constraint"), f"{where}.constraint"),
        main_metric=check_metric(
            benchmark, spec.get("main_metric"), f"{where}.main_metric", derived
        ),
        until_precise=until_precise(benchmark, spec.get("repeats"), f"{where}.repeats"),
        predict=check_predicted(spec, f"{where}.predict"),
        stop=stop_rule(benchmark, spec, f"{where}.stop"),
        alone="concurrent_runs" in spec,
        derived=derived,
        derivation=derivation,
    )


def _planned_points(
    benchmark: Benchmark,
    grid: Grid,
    extras: Sequence[Mapping[str, Any]],
    rules: Sequence[tuple[Expression, str] | LeftOut],
    listed: Sequence[bool] | None,
    derived: Collection[str],
    where: str,
) -> tuple[PlannedPoints, list[tuple[Mapping[str, Any], str]]]:
    """The points of an experiment, each once, and those that ``rules`` exclude, with the reason.

    ``listed``: which combinations are points, where the campaign lists them; ``derived``: names of
    parameters that are worked out.
    """
    identities = list(grid.identities(benchmark))
    if listed is not None:
        there = tuple(compress(grid.points(), listed))
        broken = (why for point in there for rule, why in rules if rule(point))
        if why := next(broken, None):
            raise UserError(f"{where}: a point that 'repeats' lists cannot be: {why}")
        ranks = [point["ranks"] for point in there]
        return PlannedPoints(there, list(compress(identities, listed)), ranks), []
    others: dict[str, Mapping[str, Any]] = {}
    for extra in extras:
        others.setdefault(benchmark.identity_of(extra), extra)
    if not rules and len(known := set(identities)) == len(identities):
        others = {i: extra for i, extra in others.items() if i not in known}
        ranks = [*grid.values("ranks"), *(extra["ranks"] for extra in others.values())]
        points = GridPoints(grid, list(others.values()))
        return PlannedPoints(points, [*identities, *others], ranks), []
    by_identity: dict[str, Mapping[str, Any]] = {}
    excluded: list[tuple[Mapping[str, Any], str]] = []
    for point, identity in zip(grid.points(), identities, strict=True):
        reason = next((why for rule, why in rules if rule(point)), None)
        if reason is None:
            first = by_identity.setdefault(identity, point)
            check_same(first, point, benchmark, derived, where)
        else:
            excluded.append((point, reason))
    for identity, extra in others.items():
        by_identity.setdefault(identity, extra)
    kept = tuple(by_identity.values())
    return PlannedPoints(kept, list(by_identity), [point["ranks"] for point in kept]), excluded
