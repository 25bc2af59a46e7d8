"""Checks of what an experiment says beyond its grid: variables, metrics."""

import re
from collections.abc import Collection
from itertools import chain
from typing import Any

from scalesweep.analysis.metrics import EPOCH_METRICS
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.experiment_keys import ExperimentKeys, UntilPrecise
from scalesweep.config.parameter import VARIABLE_PREFIX
from scalesweep.config.reserved_names import check_text
from scalesweep.core.errors import UserError, choices
from scalesweep.core.scaling_kinds import OF_SAMPLES


def variables_of(spec: ExperimentKeys) -> set[Any]:
    """Environment variables that an experiment sets: under ``env`` by their names, under ``axes``,
    ``linked`` and ``extra`` as ``env.NAME``."""
    keys = map(str, chain(spec.axes, *(spec.linked or ()), *spec.extra))
    set_there = (
        key.removeprefix(VARIABLE_PREFIX) for key in keys if key.startswith(VARIABLE_PREFIX)
    )
    return {*spec.env, *set_there}


def check_variables(benchmark: Benchmark, spec: ExperimentKeys, where: str) -> None:
    """Raise UserError for a variable, wherever it is set, that a parameter of the benchmark sets,
    and for what is no name of a variable."""
    for key in map(str, spec.fixed):
        if key.startswith(VARIABLE_PREFIX):
            name = key.removeprefix(VARIABLE_PREFIX)
            raise UserError(
                f"{where}.fixed.{key}: set a variable with one value as env: {{{name}: ...}}"
            )
    for name in variables_of(spec):
        check_text(name, f"{where}.env")
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
    known = {*benchmark.metrics, *more}
    if named is None or named in known or (benchmark.extract and benchmark.extract.names(named)):
        return named or benchmark.main_metric
    extracted = benchmark.extract.metrics if benchmark.extract else ()
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
