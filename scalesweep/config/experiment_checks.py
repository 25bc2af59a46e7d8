"""Checks of what an experiment says beyond its grid: constraint, programs, variables, predict."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign_keys import ExperimentKeys, UntilPrecise
from scalesweep.config.command_template import program_named
from scalesweep.config.parameter import VARIABLE_PREFIX
from scalesweep.config.reserved_names import check_text
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError, choices
from scalesweep.core.scaling_kinds import OF_SAMPLES

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# What the launcher, the scheduler or the way ranks are started tells a rank: another value would
# start other ranks than the point says, or be replaced before the program sees it.
_OF_LAUNCHERS = re.compile(
    "SCALESWEEP_.*|(HOROVOD_|OMPI_COMM_WORLD_|PMI_)?(LOCAL_|CROSS_)?(RANK|SIZE)"
    "|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)"
    "|SLURM_(JOB_?ID|STEP_?ID|PROCID|LOCALID|NODEID|NTASKS|NPROCS|NNODES|JOB_NUM_NODES"
    "|JOB_NODELIST|NODELIST|STEP_NUM_TASKS|STEP_NODELIST|TASKS_PER_NODE)"
)


def check_constraint(benchmark: Benchmark, template: str | None, where: str) -> str | None:
    """The template of a Slurm constraint, after a look at the parameters in its braces."""
    try:
        (template or "").format_map(benchmark.defaults)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        name = error.args[0]
        what = f"{name!r} is not a parameter" if isinstance(error, KeyError) else error
        raise UserError(
            f"{where}: {template!r}: {what}; in braces "
            + choices(name, sorted(benchmark.parameters))
        ) from None
    return template


def programs_without_path(
    benchmark: Benchmark,
    points: Collection[Mapping[str, Any]],
    site: Site,
    programs: Mapping[str, str],
    where: str,
) -> dict[str, str]:
    """Programs that a benchmark starts and that have no path, each with what to do, in words.

    What only plans can do without. ``where``: campaign file and experiment.
    """
    if site.launch is None:
        return {}
    needed = benchmark.command.programs(points)
    if python := program_named(benchmark.python or ""):
        needed.add(python)
    return {
        name: (
            f"{where}: benchmark {benchmark.name} starts the program '{name}', whose path is "
            f"unknown; add to {site.file}, or to this file, 'programs: {{{name}: /path}}'"
        )
        for name in sorted(needed - programs.keys())
    }


def variables_of(spec: ExperimentKeys) -> dict[str, str]:
    """Environment variables that an experiment sets, each with the key that says so: under ``env``
    by their names, under ``axes``, ``linked`` and ``extra`` as ``env.NAME``."""
    places = {name: f"env.{name}" for name in spec.env}
    lists = {"linked": spec.linked or (), "extra": spec.extra}
    keys = [(key, f"axes.{key}") for key in spec.axes]
    keys += [
        (key, f"{place}[{index}].{key}")
        for place, entries in lists.items()
        for index, entry in enumerate(entries)
        for key in entry
    ]
    for key, place in keys:
        if str(key).startswith(VARIABLE_PREFIX):
            places.setdefault(key.removeprefix(VARIABLE_PREFIX), place)
    return places


def check_variables(benchmark: Benchmark, spec: ExperimentKeys, where: str) -> dict[str, str]:
    """The variables of an experiment's ``env`` as parameters.

    Raises UserError for a variable, wherever it is set, that a parameter of the benchmark sets,
    and for what is no name of a variable.
    """
    for key in spec.fixed:
        if str(key).startswith(VARIABLE_PREFIX):
            name = str(key).removeprefix(VARIABLE_PREFIX)
            raise UserError(
                f"{where}.fixed.{key}: set a variable with one value as env: {{{name}: ...}}"
            )
    for name, place in variables_of(spec).items():
        check_text(name, f"{where}.{place}")
        fault = None
        if not _VARIABLE.fullmatch(name):
            fault = "a variable's name has letters, digits and '_'"
        elif _OF_LAUNCHERS.fullmatch(name):
            fault = "the launcher sets this variable of a rank; a campaign cannot"
        elif name in benchmark.env:
            fault = (
                f"benchmark {benchmark.name} sets this variable by its parameter "
                f"{benchmark.env[name]}; set that under axes or fixed"
            )
        if fault:
            raise UserError(f"{where}.{place}: {fault}")
    return {f"{VARIABLE_PREFIX}{name}": value for name, value in spec.env.items()}


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


def check_main_metric(spec: ExperimentKeys, derived: Collection[str], where: str) -> None:
    """Raise UserError where a rule that looks at runs would be about a metric that is worked out
    later, in the tables."""
    name = spec.main_metric
    if name not in derived:
        return
    if isinstance(spec.repeats, UntilPrecise) and spec.repeats.metric is None:
        raise UserError(
            f"{where}.repeats: name a metric that runs measure (metric: NAME): {name}, the main "
            "metric, is worked out later"
        )
    if spec.stop:
        raise UserError(
            f"{where}.main_metric: {name} is worked out after the runs, and stop decides between "
            "them; name a metric that runs measure, or leave out stop"
        )


def check_predicted(spec: ExperimentKeys, where: str) -> tuple[int, ...]:
    """The counts of ``predict``, sorted. Raises UserError where nothing could be predicted."""
    if spec.predict is None:
        return ()
    if spec.scaling not in OF_SAMPLES:
        raise UserError(f"{where}: needs the experiment's scaling; set scaling: weak or strong")
    return tuple(sorted(spec.predict.ranks))
