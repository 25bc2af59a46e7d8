"""Experiments that name several benchmarks: one part for each, which share axes and parameters.

A part is an experiment of one benchmark with runs of its own, whose ids are those of the same
points in any other experiment. Tables, figures and report show the parts as one
(``core.joined_experiments``), with ``benchmark`` as one more parameter.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from scalesweep.analysis.flop_conventions import mixed_conventions, unsure_convention
from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.campaign_keys import ExperimentKeys
from scalesweep.config.experiment import Experiment
from scalesweep.config.grid import check_overlap
from scalesweep.core.errors import UserError, choices
from scalesweep.core.formatting import listed

_OWN = "give each benchmark an experiment of its own for it"
# What is of one program alone: what to do instead.
_ALONE = {
    "derive": "set its values under linked",
    "extra": "list its points under linked",
    "predict": _OWN,
    "stop": _OWN,
}
_STATE = "state it under metrics, with a formula for each benchmark, and name that as main_metric"
_SAMPLES = "samples"
_IMAGES = "images"  # what benchmarks of images call samples


def part_name(experiment: str, benchmark: str) -> str:
    """What a part is called: no experiment of a file has a dot in its name."""
    return f"{experiment}.{benchmark}"


def parts(
    experiments: Mapping[str, ExperimentKeys], path: str
) -> Iterator[tuple[str, str, ExperimentKeys]]:
    """The experiments of a campaign file: name, name of the one that it is part of (or nothing),
    and what the file says of it with one benchmark.

    Raises UserError for what experiments of several benchmarks, or of one, cannot have.
    """
    for name, spec in experiments.items():
        where = f"{path}: experiments.{name}"
        if len(spec.benchmarks) == 1:
            _check_single(spec, where)
            yield name, "", spec
            continue
        _check_several(spec, where, Path(path).parent)
        for benchmark in spec.benchmarks:
            yield part_name(name, benchmark), name, _part(spec, benchmark)


def _check_single(spec: ExperimentKeys, where: str) -> None:
    if spec.fixed_of:
        raise UserError(
            f"{where}.fixed_of: goes with a list of benchmarks; move its values to fixed"
        )
    for metric, stated in spec.metrics.items():
        if not isinstance(stated.formula, str):
            raise UserError(
                f"{where}.metrics.{metric}.formula: a map goes with a list of benchmarks; write a "
                "text"
            )


def _check_several(spec: ExperimentKeys, where: str, folder: Path) -> None:
    for key, instead in _ALONE.items():
        if getattr(spec, key):
            raise UserError(f"{where}.{key}: not with several benchmarks; {instead}")
    names = spec.benchmarks
    known = {name: load_benchmark(name, f"{where}.benchmark", beside=folder) for name in names}
    maps: dict[str, Mapping[str, Any]] = {"fixed_of": spec.fixed_of}
    for metric, stated in spec.metrics.items():
        if isinstance(stated.formula, Mapping):
            maps[f"metrics.{metric}.formula"] = stated.formula
    for key, of in maps.items():
        for benchmark in of:
            if benchmark not in names:
                raise UserError(
                    f"{where}.{key}: {benchmark!r} is not one of the experiment's benchmarks; "
                    + choices(benchmark, names)
                )
    for place, set_there in _places(spec).items():
        for name in set_there:
            _check_shared(name, known, f"{where}.{place}", place == "fixed")
    for benchmark, own in maps["fixed_of"].items():
        for name, value in own.items():
            _check_own(name, value, benchmark, known, f"{where}.fixed_of")
        for place, set_there in _places(spec).items():
            check_overlap({place: set_there, f"fixed_of.{benchmark}": own}, where)
    _check_main(spec, known, where)


def _places(spec: ExperimentKeys) -> dict[str, Collection[str]]:
    """The parameters that an experiment sets for all of its benchmarks, by the key that does."""
    linked = (spec.linked or [{}])[0]
    return {"axes": spec.axes, "fixed": spec.fixed, "linked": linked}


def _check_shared(name: str, known: Mapping[str, Benchmark], where: str, constant: bool) -> None:
    """Raise UserError for a parameter that not all benchmarks have."""
    having = [of for of, benchmark in known.items() if name in benchmark.parameters]
    if len(having) == len(known):
        return
    if not having:
        every = sorted(set.intersection(*(set(b.parameters) for b in known.values())))
        raise UserError(
            f"{where}: neither {' nor '.join(known)} has a parameter {name!r}; "
            + choices(name, every)
        )
    lacking = listed([of for of in known if of not in having])
    has = f"{where}: {listed(having)} has {name!r}, {lacking} has not"
    instead = f"set it under fixed_of.{having[0]}"
    if not constant:
        instead += " to one value, or vary it in an experiment of that benchmark alone"
    raise UserError(f"{has}; {instead}")


def _check_own(
    name: str, value: Any, benchmark: str, known: Mapping[str, Benchmark], where: str
) -> None:
    """Raise UserError for what ``fixed_of`` cannot set of a benchmark."""
    if name == "ranks":
        raise UserError(
            f"{where}.{benchmark}: 'ranks' must be the same for all benchmarks; set it under axes "
            "or fixed"
        )
    parameters = known[benchmark].parameters
    others = [of for of, other in known.items() if name in other.parameters]
    if name not in parameters and others:
        raise UserError(
            f"{where}.{benchmark}: {benchmark} has no parameter {name!r}, {listed(others)} has; "
            f"set it under fixed_of.{others[0]}"
        )
    known[benchmark].parameter(name, f"{where}.{benchmark}").normalise(
        value, f"{where}.{benchmark}"
    )


def _check_main(spec: ExperimentKeys, known: Mapping[str, Benchmark], where: str) -> None:
    """Raise UserError where some of the benchmarks, but not all, have the main metric."""
    main, stated = spec.main_metric, spec.metrics
    if main in stated:
        formula = stated[main].formula
        lacking = [name for name in known if name not in formula]
        if isinstance(formula, Mapping) and lacking:
            raise UserError(
                f"{where}.metrics.{main}.formula: the main metric needs one of each benchmark; add "
                + listed([f"{name}: FORMULA" for name in lacking])
            )
        return
    having = [name for name, benchmark in known.items() if main in _measured(benchmark)]
    if having and len(having) < len(known):
        lacking = [name for name in known if name not in having]
        raise UserError(
            f"{where}.main_metric: {listed(having)} has {main!r}, {listed(lacking)} has not; "
            + _STATE
        )


def _measured(benchmark: Benchmark) -> set[str]:
    extracted = benchmark.extract.metrics if benchmark.extract else ()
    return {*benchmark.metrics, *(metric.metric for metric in extracted)}


def of_part(error: UserError, experiment: str, benchmark: str) -> UserError:
    """What is wrong with a part of an experiment, with the benchmark where nothing names it."""
    text = str(error)
    return error if not experiment or benchmark in text else UserError(f"{text} ({benchmark})")


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
    experiments: Sequence[Experiment], specs: Mapping[str, ExperimentKeys], path: str
) -> None:
    """Raise UserError where the parts of an experiment cannot stand in one table."""
    whole: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        if experiment.part_of:
            whole.setdefault(experiment.part_of, []).append(experiment)
    for name, members in whole.items():
        where, spec = f"{path}: experiments.{name}", specs[name]
        shared = dict.fromkeys(chain(spec.axes, spec.fixed, *(spec.linked or ())))
        for parameter in shared:
            _check_unit(parameter, [member.benchmark for member in members], where)
        _check_scale(members, where)
        _check_conventions(members, where)
        _check_metric(members, where)


def _check_unit(name: str, benchmarks: Sequence[Benchmark], where: str) -> None:
    """Each part has checked that its benchmark takes the values."""
    units = {benchmark.name: benchmark.parameters[name].unit for benchmark in benchmarks}
    if len({_SAMPLES if unit == _IMAGES else unit for unit in units.values()}) > 1:
        said = listed([f"{unit or 'no unit'} in {of}" for of, unit in units.items()])
        raise UserError(
            f"{where}: {name!r} means different things ({said}); set it under fixed_of, or measure "
            "these benchmarks in experiments of their own"
        )


def _check_scale(members: Sequence[Experiment], where: str) -> None:
    """What benchmarks scale over is the same; where the words differ it must be their ranks."""
    scales = {member.benchmark.name: member.benchmark.scale for member in members}
    if len(set(scales.values())) == 1:
        return
    for member in members:
        scale_of = member.benchmark.scale_of
        if any(scale_of(point) != point["ranks"] for point in member.points):
            said = listed([f"{of} over {scale}" for of, scale in scales.items()])
            raise UserError(
                f"{where}: the benchmarks scale over different things ({said}), and the "
                f"{member.benchmark.scale} of {member.benchmark.name} are not its ranks"
            )


def _check_conventions(members: Sequence[Experiment], where: str) -> None:
    """What is compared between the benchmarks counts FLOP by one convention, and says which."""
    for name in dict.fromkeys(chain.from_iterable(member.derived for member in members)):
        stated = [member.derived[name] for member in members if name in member.derived]
        read = chain.from_iterable(metric.reads.values() for metric in stated)
        if fault := mixed_conventions([name, *read]):
            raise UserError(f"{where}.metrics.{name}: {fault}")
    for name in dict.fromkeys(member.main_metric or "" for member in members):
        if fault := unsure_convention(name):
            raise UserError(f"{where}.main_metric: {name}: {fault}")


def _check_metric(members: Sequence[Experiment], where: str) -> None:
    main = {member.benchmark.name: member.main_metric for member in members}
    if len(set(main.values())) > 1:
        known = [
            {*member.benchmark.metrics, *member.derived, member.main_metric} for member in members
        ]
        common = sorted(name for name in set.intersection(*known) if name)
        words = [f"{metric or 'the total throughput'} of {of}" for of, metric in main.items()]
        advice = f"one of {listed(common)}" if common else "a metric that all of them report"
        raise UserError(
            f"{where}: the main metrics of the benchmarks differ ({listed(words)}); "
            f"set main_metric to {advice}, or {_STATE}"
        )
    (name,) = set(main.values())
    if name is not None and not any(name in member.derived for member in members):
        _check_meaning(name, members, where)


def _check_meaning(metric: str, members: Sequence[Experiment], where: str) -> None:
    """What benchmark.yaml says of a metric is the same; what native programs report, only runs
    say."""
    meant = {
        member.benchmark.name: meaning
        for member in members
        if (extract := member.benchmark.extract) and (meaning := extract.meaning_of(metric))
    }
    said = {
        of: f"{each['unit']}, {each['better']} is better, scope {each['scope']}, in {of}"
        for of, each in meant.items()
    }
    if any(each != next(iter(meant.values())) for each in meant.values()):
        raise UserError(
            f"{where}: the main metric {metric} means different things ({'; '.join(said.values())})"
            f"; {_STATE}"
        )
