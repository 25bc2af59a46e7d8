"""Experiments: from axes in a YAML file to points and runs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.benchmark_keys import Point
from scalesweep.config.command_template import unfilled
from scalesweep.config.derived_metrics import DerivedMetric, derived_metrics
from scalesweep.config.derived_parameters import Derivation, derived_parameters
from scalesweep.config.experiment_keys import ExperimentKeys
from scalesweep.config.parameter import VARIABLE_PREFIX, check_varying
from scalesweep.config.points import expand_points, varying_parameters
from scalesweep.config.repeats import Run, planned_runs, profiled_runs
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError, choices
from scalesweep.core.files import canonical_json
from scalesweep.core.scaling_kinds import MODEL, OF_SAMPLES

_KEPT = {"weak": "samples per {}", "strong": "total number of samples"}


@dataclass(frozen=True)
class Experiment:
    """A benchmark with axes, expanded: its points, runs, and what was excluded and why.

    ``keys``: what the file says, for one benchmark; ``runs``: with repeats until precise those that
    are planned so far; ``profiles``: runs under a profiler; ``control``: it is the control point;
    ``alone``: one run at a time (``concurrent_runs``); ``derivation``: parameters that are worked
    out, none of ``axes``; ``part_of``: the experiment of several benchmarks that it is of.
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
    alone: bool
    control: bool = False
    part_of: str = ""


def expand_experiment(
    name: str,
    spec: ExperimentKeys,
    site: Site,
    where: str,
    folder: Path,
    profile: str | None = None,
) -> Experiment:
    """The experiment that ``spec`` describes. ``folder``: of the campaign's file and of benchmarks
    that an import made; ``profile``: what --config asks of all. Raises UserError."""
    benchmark = load_benchmark(spec.benchmark, f"{where}.benchmark", beside=folder)
    variables = _variables(benchmark, spec, where)
    benchmark = benchmark.scaled_over(spec.scale, f"{where}.scale").with_variables(variables)
    benchmark, derivation = derived_parameters(benchmark, spec, where)
    points, excluded = expand_points(benchmark, derivation, spec, site, where)
    varied = varying_parameters(benchmark, points)
    check_varying(varied, where)
    axes = tuple(name for name in varied if name not in derivation.derived)
    check_scaling(benchmark, spec.scaling, axes, points, where)
    derived = derived_metrics(benchmark, spec.metrics, f"{where}.metrics")
    check_rules(benchmark, spec, where)
    if fault := unfilled(spec.constraint or "", benchmark.defaults):
        raise UserError(f"{where}.constraint: {fault}")
    runs = planned_runs(benchmark, points, spec)
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
        alone=spec.concurrent_runs is not None,
    )


def _variables(benchmark: Benchmark, spec: ExperimentKeys, where: str) -> set[str]:
    """Environment variables that an experiment sets, as ``env.NAME``. Raises UserError."""
    keys = map(str, chain(spec.axes, spec.fixed, *(spec.linked or ()), *spec.extra))
    names = {key.removeprefix(VARIABLE_PREFIX) for key in keys if key.startswith(VARIABLE_PREFIX)}
    for name in names & benchmark.env.keys():
        raise UserError(f"{where}: env.{name}: set the parameter {benchmark.env[name]} instead")
    for name in names:
        if not (name.isidentifier() and name.isascii()):
            raise UserError(f"{where}: env.{name}: a variable's name has letters, digits and '_'")
    return names


def check_metric(
    benchmark: Benchmark, named: str | None, where: str, more: Collection[str] = ()
) -> str | None:
    """The metric that an experiment names; else its benchmark's main one. Raises UserError."""
    known, extract = {*benchmark.metrics, *more}, benchmark.extract
    if named is None or named in known or (extract and extract.meaning_of(named)):
        return named or benchmark.main_metric
    allowed = choices(named, sorted({*known, *(extract.known if extract else ())}))
    raise UserError(f"{where}: {named!r} is not a metric of benchmark {benchmark.name}; {allowed}")


def check_rules(benchmark: Benchmark, spec: ExperimentKeys, where: str) -> None:
    """Raise UserError for ``repeats``, ``stop_below`` or ``predict`` of what no run measures."""
    for key, asked in {"repeats": spec.until_precise, "stop_below": spec.stop_below}.items():
        if asked:
            check_metric(benchmark, spec.main_metric, f"{where}.{key}: main_metric")
    for key, needed in {"predict": spec.predict, "stop_below": spec.stop_below}.items():
        if needed and spec.scaling not in OF_SAMPLES:
            raise UserError(f"{where}.{key}: needs scaling; set scaling: weak or strong")


def check_scaling(
    benchmark: Benchmark, scaling: str, varying: Sequence[str], points: Sequence[Point], where: str
) -> None:
    """Raise UserError for a weak series that does not keep the work per rank, or a strong one that
    does not keep that in all."""
    scale = benchmark.scale
    if scale in benchmark.parameters and any((point[scale] or 0) < 1 for point in points):
        raise UserError(f"{where}.scale: {scale} must be 1 or more at every point")
    checked = scaling in OF_SAMPLES and benchmark.work is not None
    if (checked or scaling == MODEL) and scale not in varying:
        raise UserError(f"{where}.scaling: {scaling}, but '{scale}' takes one value only")
    if not checked or not (mixed := _mixed(benchmark, scaling, varying, points)):
        return
    other = "strong" if scaling == "weak" else "weak"
    fits = "none" if _mixed(benchmark, other, varying, points) else other
    kept = _KEPT[scaling].format(scale.removesuffix("s"))
    raise UserError(
        f"{where}.scaling: {scaling} keeps the {kept} the same at several numbers of {scale}, but "
        f"{mixed}; set scaling: {fits}, or derive what decides it from {scale}"
    )


def _mixed(
    benchmark: Benchmark, scaling: str, varying: Sequence[str], points: Sequence[Point]
) -> str:
    """The work at two scales of the first such series; empty: none."""
    left_out = {benchmark.scale, *benchmark.work_parameters, *benchmark.scale_parameters}
    shared = [name for name in varying if name not in left_out]
    series: dict[str, dict[float, list[int]]] = {}
    for point in points:
        scale, work = benchmark.scale_of(point), benchmark.total_work(point) or 0
        amounts = series.setdefault(canonical_json([point[name] for name in shared]), {})
        at = amounts.setdefault(work / scale if scaling == "weak" else work, [])
        at.extend([scale] if scale not in at else [])
    for amounts in series.values():
        alone = {scales[0]: work for work, scales in amounts.items() if len(scales) == 1}
        apart = len(alone) > 1 and all(len(scales) == 1 for scales in amounts.values())
        if len(amounts) > 1 and (apart or 2 * len(alone) > len(amounts)):
            return "it is " + " and ".join(f"{alone[at]:g} at {at}" for at in sorted(alone)[:2])
    return ""
