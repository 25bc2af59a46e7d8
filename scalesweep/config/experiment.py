"""Experiments: from axes in a YAML file to points and runs."""

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from scalesweep.analysis.metrics import EPOCH_METRICS
from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.command_template import fill
from scalesweep.config.derived_metrics import DerivedMetric, derived_metrics
from scalesweep.config.derived_parameters import Derivation, derived_parameters
from scalesweep.config.experiment_keys import ExperimentKeys
from scalesweep.config.parameter import VARIABLE_PREFIX, check_varying
from scalesweep.config.points import exclusions, expand_points, varying_parameters
from scalesweep.config.repeats import Run, planned_runs, profiled_runs
from scalesweep.config.scaling_check import check_scaling
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.scaling_kinds import OF_SAMPLES


@dataclass(frozen=True)
class Experiment:
    """A benchmark with axes, expanded: its points, runs, and what was excluded and why.

    ``keys`` is what the file says of it, for one benchmark. ``profiles`` are runs of the points
    once more, under a profiler. ``control`` is set for the control point, repeated between all
    others. With repeats until precise each point has as many ``runs`` as are planned so far.
    ``alone``: no run of it starts while another of its runs lasts (``concurrent_runs: 1``).
    ``derivation``: which parameters are worked out from others; they are none of ``axes``.
    ``rules``: what it excludes, whatever points it has.
    ``part_of``: the experiment of several benchmarks of which it is one; empty for all others.
    """

    name: str
    keys: ExperimentKeys
    benchmark: Benchmark
    axes: tuple[str, ...]
    linked: tuple[str, ...]
    points: Sequence[Mapping[str, Any]]
    runs: Sequence[Run]
    profiles: tuple[Run, ...]
    excluded: tuple[tuple[Mapping[str, Any], str], ...]
    time_limit_minutes: float
    main_metric: str | None
    derived: Mapping[str, DerivedMetric]
    derivation: Derivation
    rules: tuple[Expression, ...]
    alone: bool
    control: bool = False
    part_of: str = ""


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
    benchmark = load_benchmark(spec.benchmark, f"{where}.benchmark", beside=folder)
    check_variables(benchmark, spec, where)
    benchmark = benchmark.scaled_over(spec.scale, f"{where}.scale").with_variables(variables)
    benchmark, derivation = derived_parameters(benchmark, spec, where)
    rules = exclusions(benchmark, spec, where)
    kept, excluded = expand_points(benchmark, derivation, spec, rules, site, where)
    points = tuple(kept.values())
    varied = varying_parameters(benchmark, points)
    check_varying(varied, where)
    axes = tuple(name for name in varied if name not in derivation.derived)
    check_scaling(benchmark, spec.scaling, axes, points, where)
    derived = derived_metrics(benchmark, spec.metrics, f"{where}.metrics")
    check_rules(benchmark, spec, where)
    fill(spec.constraint or "", benchmark.defaults, f"{where}.constraint")
    runs = planned_runs(benchmark, kept, spec)
    return Experiment(
        name=name,
        keys=spec,
        benchmark=benchmark,
        axes=axes,
        linked=tuple((spec.linked or [{}])[0]),
        points=points,
        runs=runs,
        profiles=profiled_runs(benchmark, spec.profile, profile, points, runs, where),
        excluded=tuple(excluded),
        time_limit_minutes=spec.time_limit_minutes or site.time_limit_minutes,
        main_metric=check_metric(benchmark, spec.main_metric, f"{where}.main_metric", derived),
        derived=derived,
        derivation=derivation,
        rules=tuple(rule for rule, _ in rules),
        alone=spec.concurrent_runs is not None,
    )


def variables_of(spec: ExperimentKeys) -> set[Any]:
    """Environment variables that an experiment sets, as ``env.NAME``."""
    keys = map(str, chain(spec.axes, spec.fixed, *(spec.linked or ()), *spec.extra))
    return {key.removeprefix(VARIABLE_PREFIX) for key in keys if key.startswith(VARIABLE_PREFIX)}


def check_variables(benchmark: Benchmark, spec: ExperimentKeys, where: str) -> None:
    """Raise UserError for a variable, wherever it is set, that a parameter of the benchmark sets,
    and for what is no name of a variable."""
    for name in variables_of(spec):
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise UserError(f"{where}: env.{name}: a variable's name has letters, digits and '_'")
        if name in benchmark.env:
            raise UserError(
                f"{where}: env.{name}: benchmark {benchmark.name} sets this variable by its "
                f"parameter {benchmark.env[name]}; set that under axes or fixed"
            )


def check_metric(
    benchmark: Benchmark, named: str | None, where: str, more: Collection[str] = ()
) -> str | None:
    """The metric that an experiment names, one of its benchmark's or of ``more``; the benchmark's
    main one where it names none. Raises UserError."""
    known, extract = {*benchmark.metrics, *more}, benchmark.extract
    if named is None or named in known or (extract and extract.meaning_of(named)):
        return named or benchmark.main_metric
    extracted = extract.metrics if extract else ()
    names = sorted({*known, *(metric.metric for metric in extracted)})
    raise UserError(
        f"{where}: {named!r} is not a metric of benchmark {benchmark.name}; "
        + (choices(named, names) if names else "it has only its own: leave main_metric out")
    )


def check_rules(benchmark: Benchmark, spec: ExperimentKeys, where: str) -> None:
    """Raise UserError where ``repeats``, ``stop`` and ``predict`` are about what no run measures,
    such as a metric that is worked out later, in the tables."""
    if until := spec.until_precise:
        metric = until.metric or spec.main_metric
        check_metric(benchmark, metric, f"{where}.repeats.metric", EPOCH_METRICS)
    if spec.stop:
        check_metric(benchmark, spec.main_metric, f"{where}.stop: main_metric")
    for key, needed in {"predict": spec.predict, "stop.when": spec.stop}.items():
        if needed and spec.scaling not in OF_SAMPLES:
            raise UserError(
                f"{where}.{key}: needs the experiment's scaling; set scaling: weak or strong"
            )
