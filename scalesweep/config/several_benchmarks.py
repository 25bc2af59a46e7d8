"""Experiments that name several benchmarks: one part for each, which share axes and parameters.

A part is an experiment of one benchmark with runs of its own, whose ids are those of the same
points in any other experiment. Tables, figures and report show the parts as one
(``core.joined_experiments``), with ``benchmark`` as one more parameter.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.experiment import Experiment
from scalesweep.config.grid import check_overlap
from scalesweep.core.errors import UserError, choices
from scalesweep.core.formatting import listed

# What decides between runs, or predicts them, of one program alone.
_ALONE = ("derive", "extra", "predict", "stop")
_SAMPLES = "samples"
_IMAGES = "images"  # what benchmarks of images call samples


def part_name(experiment: str, benchmark: str) -> str:
    """What a part is called: no experiment of a file has a dot in its name."""
    return f"{experiment}.{benchmark}"


def parts(
    experiments: Mapping[str, Mapping[str, Any]], path: str
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The experiments of a campaign file: name, name of the one that it is part of (or nothing),
    and what the file says of it with one benchmark.

    Raises UserError for what experiments of several benchmarks, or of one, cannot have.
    """
    for name, spec in experiments.items():
        where = f"{path}: experiments.{name}"
        if isinstance(spec["benchmark"], str):
            _check_single(spec, where)
            yield name, "", spec
            continue
        _check_several(spec, where)
        for benchmark in spec["benchmark"]:
            yield part_name(name, benchmark), name, _part(spec, benchmark)


def _check_single(spec: Mapping[str, Any], where: str) -> None:
    if "fixed_of" in spec:
        raise UserError(
            f"{where}.fixed_of: goes with a list of benchmarks; move its values to fixed"
        )
    for metric, stated in spec.get("metrics", {}).items():
        if not isinstance(stated["formula"], str):
            raise UserError(
                f"{where}.metrics.{metric}.formula: a map goes with a list of benchmarks; write a "
                "text"
            )


def _check_several(spec: Mapping[str, Any], where: str) -> None:
    for key in _ALONE:
        if key in spec:
            raise UserError(f"{where}.{key}: not with several benchmarks; leave it out")
    if isinstance(spec.get("repeats", 1), Mapping):
        raise UserError(f"{where}.repeats: with several benchmarks a number, not a rule")
    maps = {"fixed_of": spec.get("fixed_of", {})}
    for metric, stated in spec.get("metrics", {}).items():
        if isinstance(stated["formula"], Mapping):
            maps[f"metrics.{metric}.formula"] = stated["formula"]
    for key, of in maps.items():
        for benchmark in of:
            if benchmark not in spec["benchmark"]:
                raise UserError(
                    f"{where}.{key}: {benchmark!r} is not one of the experiment's benchmarks; "
                    + choices(benchmark, spec["benchmark"])
                )
    for benchmark, own in maps["fixed_of"].items():
        if "ranks" in own:
            raise UserError(
                f"{where}.fixed_of.{benchmark}: 'ranks' must be the same for all benchmarks; "
                "set it under axes or fixed"
            )
        check_overlap({"fixed": spec.get("fixed", {}), f"fixed_of.{benchmark}": own}, where)


def _part(spec: Mapping[str, Any], benchmark: str) -> dict[str, Any]:
    """What the file says of an experiment, with one of its benchmarks."""
    part = {key: value for key, value in spec.items() if key not in ("fixed_of", "metrics")}
    part["benchmark"] = benchmark
    part["fixed"] = {**spec.get("fixed", {}), **spec.get("fixed_of", {}).get(benchmark, {})}
    metrics = {}
    for name, stated in spec.get("metrics", {}).items():
        formula = stated["formula"]
        text = formula.get(benchmark) if isinstance(formula, Mapping) else formula
        if text is not None:
            metrics[name] = {**stated, "formula": text}
    return {**part, "metrics": metrics} if metrics else part


def check_parts(
    experiments: Sequence[Experiment], specs: Mapping[str, Mapping[str, Any]], path: str
) -> None:
    """Raise UserError where the parts of an experiment cannot stand in one table."""
    whole: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        if experiment.part_of:
            whole.setdefault(experiment.part_of, []).append(experiment)
    for name, members in whole.items():
        where, spec = f"{path}: experiments.{name}", specs[name]
        shared = dict.fromkeys(chain(spec.get("axes", {}), spec.get("fixed", {}),
                                     *spec.get("linked", [])))  # fmt: skip
        for parameter in shared:
            _check_unit(parameter, [member.benchmark for member in members], where)
        _check_scale(members, where)
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
            f"set main_metric to {advice}"
        )
