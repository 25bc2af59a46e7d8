"""Experiments of several benchmarks: one part for each, with the same axes. Tables, figures and
report show them as one (``core.joined_experiments``), with ``benchmark`` as one more parameter."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from scalesweep.analysis.flop_conventions import mixed_conventions
from scalesweep.config.experiment import Experiment
from scalesweep.config.experiment_keys import ExperimentKeys
from scalesweep.core.errors import UserError, choices
from scalesweep.core.formatting import listed

_ALONE = ("derive", "extra", "predict", "stop_below")  # of one program alone


def parts(
    experiments: Mapping[str, ExperimentKeys], path: Path
) -> Iterator[tuple[str, str, ExperimentKeys]]:
    """The experiments of a campaign file: name, name of the one that it is part of (or nothing),
    and what the file says of it with one benchmark. Raises UserError."""
    for name, spec in experiments.items():
        where, several = f"{path}: experiments.{name}", len(spec.benchmarks) > 1
        named = {f"metrics.{it}.formula": of.formula.keys() for it, of in spec.metrics.items()}
        for key, benchmarks in {"fixed_of": spec.fixed_of.keys(), **named}.items():
            for benchmark in benchmarks - {"", *spec.benchmarks}:
                allowed = choices(benchmark, spec.benchmarks)
                raise UserError(f"{where}.{key}: {benchmark!r}: {allowed}")
        if several and (alone := [key for key in _ALONE if getattr(spec, key)]):
            raise UserError(f"{where}.{alone[0]}: not with several benchmarks; give each its own")
        for benchmark in dict.fromkeys(spec.benchmarks):
            part = _part(spec, benchmark)
            # No experiment of a file has a dot in its name.
            yield (f"{name}.{benchmark}", name, part) if several else (name, "", part)


def _part(spec: ExperimentKeys, benchmark: str) -> ExperimentKeys:
    """What the file says of an experiment, with one of its benchmarks."""
    metrics = {}
    for name, stated in spec.metrics.items():
        if text := stated.formula.get(benchmark, stated.formula.get("")):
            metrics[name] = stated.model_copy(update={"formula": {"": text}})
    fixed = {**spec.fixed, **spec.fixed_of.get(benchmark, {})}
    return spec.model_copy(
        update={"benchmarks": (benchmark,), "fixed": fixed, "fixed_of": {}, "metrics": metrics}
    )


def check_parts(
    experiments: Sequence[Experiment], specs: Mapping[str, ExperimentKeys], path: Path
) -> None:
    """Raise UserError if parts do not fit into one table, or a metric's name has two meanings."""
    for name in specs:
        members = [experiment for experiment in experiments if experiment.part_of == name]
        if fault := members and _fault(members):
            raise UserError(f"{path}: experiments.{name}{fault}")
    known: dict[tuple[str, str], Experiment] = {}
    for each in experiments:  # those of one benchmark may share runs
        for name, metric in each.derived.items():
            other = known.setdefault((each.benchmark.name, name), each)
            if other.derived[name] != metric:
                raise UserError(
                    f"{path}: experiments.{each.name}.metrics.{name}: differs from that of "
                    f"{other.name}, which measures {each.benchmark.name} too; rename one of them"
                )


def _fault(members: Sequence[Experiment]) -> str | None:
    """What keeps parts out of one table, with the key before it."""
    for member in members:
        for name in member.derivation.quantities:
            at = f": benchmark {member.benchmark.name} has no {name!r}"
            return f"{at}; fixed_of sets parameters of one"
    scales = {of.benchmark.scale for of in members}
    if len(scales) > 1 and any(
        of.benchmark.scale_of(point) != point["ranks"] for of in members for point in of.points
    ):
        return f": the benchmarks scale over different things ({listed(sorted(scales))})"
    for name in dict.fromkeys(chain.from_iterable(of.derived for of in members)):
        stated = [of.derived[name] for of in members if name in of.derived]
        read = chain.from_iterable(metric.reads.values() for metric in stated)
        if fault := mixed_conventions([name, *read]):
            return f".metrics.{name}: {fault}"
    return _fault_of_metric(members)


def _fault_of_metric(members: Sequence[Experiment]) -> str | None:
    """Why the main metrics of parts are not one; what native programs report, only runs say."""
    names, meanings = {of.main_metric for of in members}, []
    for of in members:
        name, extract = of.main_metric or "the total throughput", of.benchmark.extract
        meaning = extract and name not in of.derived and extract.meaning_of(name)
        words = [f"{key} {meaning[key]}" for key in ("unit", "better", "scope")] if meaning else []
        if words or len(names) > 1:
            meanings.append(", ".join([name, *words]))
    if len(said := dict.fromkeys(meanings)) < 2:
        return None
    return (
        f": the main metrics of the benchmarks differ ({'; '.join(said)}); state one under "
        "metrics, with a formula for each benchmark, and name it as main_metric"
    )
