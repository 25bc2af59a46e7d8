"""Experiments that name several benchmarks: one part for each, which share axes and parameters.

A part is an experiment of one benchmark with runs of its own, whose ids are those of the same
points in any other experiment. Tables, figures and report show the parts as one
(``core.joined_experiments``), with ``benchmark`` as one more parameter.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from scalesweep.analysis.flop_conventions import mixed_conventions, unsure_convention
from scalesweep.config.experiment import Experiment
from scalesweep.config.experiment_keys import ExperimentKeys
from scalesweep.core.errors import UserError, choices
from scalesweep.core.formatting import listed

# What is of one program alone: what to do instead.
_ALONE = {
    "derive": "set its values under linked",
    "extra": "list its points under linked",
    "predict": "give each benchmark an experiment of its own for it",
    "stop": "give each benchmark an experiment of its own for it",
}
_STATE = "state it under metrics, with a formula for each benchmark, and name that as main_metric"


def parts(
    experiments: Mapping[str, ExperimentKeys], path: Path
) -> Iterator[tuple[str, str, ExperimentKeys]]:
    """The experiments of a campaign file: name, name of the one that it is part of (or nothing),
    and what the file says of it with one benchmark.

    Raises UserError for what experiments of several benchmarks, or of one, cannot have.
    """
    for name, spec in experiments.items():
        where = f"{path}: experiments.{name}"
        if len(spec.benchmarks) > 1:
            _check_several(spec, where)
            for benchmark in spec.benchmarks:
                # No experiment of a file has a dot in its name.
                yield f"{name}.{benchmark}", name, _part(spec, benchmark)
            continue
        stated = {f"metrics.{it}.formula": metric.formula for it, metric in spec.metrics.items()}
        for key, value in {**stated, "fixed_of": spec.fixed_of}.items():
            if value and isinstance(value, Mapping):
                raise UserError(f"{where}.{key}: a map goes with a list of benchmarks")
        yield name, "", spec


def _check_several(spec: ExperimentKeys, where: str) -> None:
    for key, instead in _ALONE.items():
        if getattr(spec, key):
            raise UserError(f"{where}.{key}: not with several benchmarks; {instead}")
    formulas = {f"metrics.{name}.formula": stated.formula for name, stated in spec.metrics.items()}
    for key, of in {"fixed_of": spec.fixed_of, **formulas}.items():
        for benchmark in of if isinstance(of, Mapping) else ():
            if benchmark not in spec.benchmarks:
                raise UserError(
                    f"{where}.{key}: {benchmark!r} is not one of the experiment's benchmarks; "
                    + choices(benchmark, spec.benchmarks)
                )
    for benchmark, own in spec.fixed_of.items():
        for name in own:
            if name == "ranks" or name in {*spec.axes, *spec.fixed, *(spec.linked or [{}])[0]}:
                raise UserError(
                    f"{where}.fixed_of.{benchmark}: {name!r} is the same for all benchmarks; set "
                    "it under axes or fixed"
                )


def _part(spec: ExperimentKeys, benchmark: str) -> ExperimentKeys:
    """What the file says of an experiment, with one of its benchmarks."""
    metrics = {}
    for name, stated in spec.metrics.items():
        formula = stated.formula
        text = formula.get(benchmark) if isinstance(formula, Mapping) else formula
        if text is not None:
            metrics[name] = stated.model_copy(update={"formula": text})
    fixed = {**spec.fixed, **spec.fixed_of.get(benchmark, {})}
    return spec.model_copy(
        update={"benchmarks": (benchmark,), "fixed": fixed, "fixed_of": {}, "metrics": metrics}
    )


def check_parts(
    experiments: Sequence[Experiment], specs: Mapping[str, ExperimentKeys], path: Path
) -> None:
    """Raise UserError where the parts of an experiment cannot stand in one table."""
    for name, spec in specs.items():
        members = [experiment for experiment in experiments if experiment.part_of == name]
        if fault := members and _fault(members, spec):
            raise UserError(f"{path}: experiments.{name}{fault}")


def _fault(members: Sequence[Experiment], spec: ExperimentKeys) -> str | None:
    """What keeps parts out of one table, with the key before it."""
    for name in dict.fromkeys(chain(spec.axes, spec.fixed, *(spec.linked or ()))):
        units = {of.benchmark.name: of.benchmark.parameters[name].unit for of in members}
        # What benchmarks of images call samples.
        if len({"samples" if unit == "images" else unit for unit in units.values()}) > 1:
            said = listed([f"{unit or 'no unit'} in {of}" for of, unit in units.items()])
            return (
                f": {name!r} means different things ({said}); set it under fixed_of, or measure "
                "these benchmarks in experiments of their own"
            )
    scales = {of.benchmark.name: of.benchmark.scale for of in members}
    others = [
        of.benchmark
        for of in members
        if any(of.benchmark.scale_of(point) != point["ranks"] for point in of.points)
    ]
    if len(set(scales.values())) > 1 and others:
        said = listed([f"{of} over {scale}" for of, scale in scales.items()])
        return (
            f": the benchmarks scale over different things ({said}), and the {others[0].scale} of "
            f"{others[0].name} are not its ranks"
        )
    for name in dict.fromkeys(chain.from_iterable(of.derived for of in members)):
        stated = [of.derived[name] for of in members if name in of.derived]
        read = chain.from_iterable(metric.reads.values() for metric in stated)
        if fault := mixed_conventions([name, *read]):
            return f".metrics.{name}: {fault}"
    for name in dict.fromkeys(of.main_metric or "" for of in members):
        if fault := unsure_convention(name):
            return f".main_metric: {name}: {fault}"
    return _fault_of_metric(members)


def _fault_of_metric(members: Sequence[Experiment]) -> str | None:
    """Why the main metrics of parts are not one; what native programs report, only runs say."""
    main = {of.benchmark.name: of.main_metric for of in members}
    if len(set(main.values())) > 1:
        known = [{*of.benchmark.metrics, *of.derived, of.main_metric} for of in members]
        common = sorted(name for name in set.intersection(*known) if name)
        words = [f"{metric or 'the total throughput'} of {of}" for of, metric in main.items()]
        advice = f"one of {listed(common)}" if common else "a metric that all of them report"
        return (
            f": the main metrics of the benchmarks differ ({listed(words)}); set main_metric to "
            f"{advice}, or {_STATE}"
        )
    (name,) = set(main.values())
    if name is None or any(name in of.derived for of in members):
        return None
    said = {
        f"{m['unit']}, {m['better']} is better, scope {m['scope']}": f"in {of.benchmark.name}"
        for of in members
        if (extract := of.benchmark.extract) and (m := extract.meaning_of(name))
    }
    if len(said) < 2:
        return None
    words = [", ".join(both) for both in said.items()]
    return f": the main metric {name} means different things ({'; '.join(words)}); {_STATE}"
