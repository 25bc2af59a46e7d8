"""Experiments: from axes in a YAML file to points and runs."""

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from scalesweep.analysis.metrics import EPOCH_METRICS
from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.command_template import fill
from scalesweep.config.derived_metrics import derived_metrics
from scalesweep.config.derived_parameters import Derivation, derived_parameters
from scalesweep.config.experiment_keys import ExperimentKeys, MetricKeys, StopRule, UntilPrecise
from scalesweep.config.parameter import VARIABLE_PREFIX
from scalesweep.config.points import expand_points, varying_parameters
from scalesweep.config.repeats import Run, planned_runs, profiled_runs
from scalesweep.config.reserved_names import check_varying
from scalesweep.config.scaling_check import check_scaling
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.scaling_kinds import OF_SAMPLES


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
    derived: Mapping[str, MetricKeys] = field(default_factory=dict)
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
    benchmark = load_benchmark(spec.benchmark, f"{where}.benchmark", beside=folder)
    check_variables(benchmark, spec, where)
    benchmark = benchmark.scaled_over(spec.scale, f"{where}.scale").with_variables(variables)
    benchmark, derivation = derived_parameters(benchmark, spec, where)
    env = {f"{VARIABLE_PREFIX}{name}": value for name, value in spec.env.items()}
    made = expand_points(benchmark, derivation, spec, env, site, where)
    points = tuple(made.kept.values())
    varied = varying_parameters(benchmark, points)
    check_varying(varied, where)
    axes = tuple(name for name in varied if name not in derivation.derived)
    check_scaling(benchmark, spec.scaling, axes, points, where, made.whole)
    derived = derived_metrics(benchmark, spec.metrics, f"{where}.metrics")
    check_rules(benchmark, spec, derived, where)
    fill(spec.constraint or "", benchmark.defaults, f"{where}.constraint")
    runs = planned_runs(benchmark, made.kept, spec)
    return Experiment(
        name=name,
        benchmark=benchmark,
        description=spec.description,
        scaling=spec.scaling,
        axes=axes,
        linked=made.linked,
        points=points,
        runs=runs,
        profiles=profiled_runs(benchmark, spec.profile, profile, points, runs, where),
        excluded=tuple(made.excluded),
        time_limit_minutes=spec.time_limit_minutes or site.time_limit_minutes,
        expected_minutes=spec.expected_minutes,
        memory_gib_per_rank=spec.memory_gib_per_rank,
        constraint=spec.constraint,
        main_metric=check_metric(benchmark, spec.main_metric, f"{where}.main_metric", derived),
        until_precise=spec.repeats if isinstance(spec.repeats, UntilPrecise) else None,
        predict=tuple(sorted(spec.predict.ranks)) if spec.predict else (),
        stop=spec.stop,
        alone=spec.concurrent_runs is not None,
        derived=derived,
        derivation=derivation,
        rules=made.rules,
    )


def variables_of(spec: ExperimentKeys) -> set[Any]:
    """Environment variables that an experiment sets: under ``env`` by their names, elsewhere as
    ``env.NAME``."""
    keys = map(str, chain(spec.axes, spec.fixed, *(spec.linked or ()), *spec.extra))
    named = (key.partition(VARIABLE_PREFIX) for key in keys)
    return {*spec.env, *(name for before, prefix, name in named if prefix and not before)}


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


def check_rules(
    benchmark: Benchmark, spec: ExperimentKeys, derived: Collection[str], where: str
) -> None:
    """Raise UserError where ``repeats``, ``stop`` and ``predict`` are about what no run measures:
    a metric of ``derived`` is worked out later, in the tables."""
    until = spec.repeats if isinstance(spec.repeats, UntilPrecise) else None
    late = spec.main_metric if spec.main_metric in derived else None
    if until and until.metric:
        check_metric(benchmark, until.metric, f"{where}.repeats.metric", EPOCH_METRICS)
    elif until and late:
        raise UserError(
            f"{where}.repeats: name a metric that runs measure (metric: NAME): {late}, the main "
            "metric, is worked out later"
        )
    if spec.stop and late:
        raise UserError(
            f"{where}.main_metric: {late} is worked out after the runs, and stop decides between "
            "them; name a metric that runs measure, or leave out stop"
        )
    series = {"predict": spec.predict, "stop.when": spec.stop}
    for key, needed in series.items():
        if needed and spec.scaling not in OF_SAMPLES:
            raise UserError(
                f"{where}.{key}: needs the experiment's scaling; set scaling: weak or strong"
            )
