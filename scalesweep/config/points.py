"""The points of an experiment: axes, linked entries and extra points, and what is left out."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations, compress, product
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.benchmark_keys import Point
from scalesweep.config.derived_parameters import Derivation
from scalesweep.config.experiment_keys import ExperimentKeys, RangeKeys
from scalesweep.config.models import settled
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

MOST_COMBINATIONS = 500_000  # before some are excluded
MOST_POINTS = 50_000


def expand_points(
    benchmark: Benchmark, derivation: Derivation, spec: ExperimentKeys, site: Site, where: str
) -> tuple[tuple[Point, ...], list[tuple[Point, str]]]:
    """The points that an experiment states, and those that it excludes or that cannot be, each with
    the reason. Raises UserError for a wrong value, and for a point that does not fit the site."""
    rules, own_rules = _exclusions(benchmark, spec, where), benchmark.rules if site.launch else ()
    kept: dict[str, Point] = {}
    excluded: list[tuple[Point, str]] = []
    for stated in _stated(benchmark, spec, where):
        point, why = derivation.at(stated)
        why = why or next((reason for rule, reason in rules if rule(point)), "")
        broken = (f"{benchmark.name}: {rule.reason}" for rule in own_rules if rule.fault(point))
        if why := why or next(broken, ""):
            excluded.append((point, why))
        else:
            first = kept.setdefault(benchmark.identity_of(point), point)
            derivation.check_same(first, point, where)
    if isinstance(spec.repeats, tuple) and len(kept) != sum(map(bool, spec.repeats)):
        raise UserError(
            f"{where}.repeats: a list must hold the repeats of each combination of linked and axes "
            "([]: no such point), each another point, and none excluded or extra"
        )
    points = tuple(kept.values())
    _check_points(benchmark, site, points, excluded, where)
    return points, excluded


def _check_points(
    benchmark: Benchmark,
    site: Site,
    points: Sequence[Point],
    excluded: Sequence[tuple[Point, str]],
    where: str,
) -> None:
    """Raise UserError for too many points or none, and for one that does not fit the site."""
    if len(points) > MOST_POINTS:
        raise UserError(f"{where}: has {len(points):,} points; at most {MOST_POINTS:,} are allowed")
    if not points:
        for point, why in excluded:
            if why.startswith(f"{benchmark.name}: "):
                benchmark.check_point(point, where)
        reasons = "; ".join(dict.fromkeys(why for _, why in excluded))
        raise UserError(f"{where}: no point is left; all {len(excluded)} are excluded ({reasons})")
    for point in points:
        site.check_point(benchmark, point, where)
    if site.launch:
        nullable = [name for name, of in benchmark.parameters.items() if "null" in of.types]
        benchmark.command.check(points, nullable, where)
    if benchmark.transformer:  # of every point that would take as long as all other checks
        benchmark.transformer.at(points[0], f"{where}: {benchmark.name}")


def _stated(benchmark: Benchmark, spec: ExperimentKeys, where: str) -> list[dict[str, Any]]:
    """The points of the grid, if they have repeats, and the extra ones. Raises UserError."""
    linked = [
        benchmark.normalised(entry, f"{where}.linked[{index}]")
        for index, entry in enumerate(spec.linked or [{}])
    ]
    for index, entry in enumerate(linked):
        if entry.keys() != linked[0].keys():
            raise UserError(
                f"{where}.linked[{index}]: all entries must set the same parameters, "
                f"{', '.join(linked[0])}"
            )
    axes = [_axis(benchmark, *item, f"{where}.axes.{item[0]}") for item in spec.axes.items()]
    places: dict[str, Point] = {"axes": spec.axes, "linked": linked[0], "fixed": spec.fixed}
    for (place, left), (other, right) in combinations(places.items(), 2):
        if both := sorted(left.keys() & right.keys()):
            raise UserError(f"{where}: {both[0]!r} is set in {place} and in {other}; keep one")
    number = math.prod(map(len, (linked, *axes)))
    if number > MOST_COMBINATIONS:
        most = f"at most {MOST_COMBINATIONS:,} are allowed"
        raise UserError(f"{where}: the grid has {number:,} combinations; {most}")
    base = {**benchmark.defaults, **benchmark.normalised(spec.fixed, f"{where}.fixed")}
    points = grid_points(base, [linked, *axes])
    if isinstance(spec.repeats, tuple) and len(spec.repeats) == number:
        points = list(compress(points, spec.repeats))
    for index, entry in enumerate(spec.extra):
        own = benchmark.normalised(entry, f"{where}.extra[{index}]")
        for name in sorted({*spec.axes, *linked[0]} - own.keys()):
            raise UserError(f"{where}.extra[{index}]: must set {name!r} too: the grid does")
        points.append({**base, **own})
    return points


def grid_points(base: Point, choices: Sequence[Sequence[Point]]) -> list[dict[str, Any]]:
    """Every combination of parts of the choices over ``base``, the last changing fastest."""
    return [
        dict(chain(base.items(), *(part.items() for part in parts))) for parts in product(*choices)
    ]


def _axis(benchmark: Benchmark, name: str, value: Any, where: str) -> list[dict[str, Any]]:
    """Values of an axis in order, normalised, each by its name; refuses repeated ones."""
    parameter = benchmark.parameter(name, where)
    values = _range(value, where) if isinstance(value, RangeKeys) else value
    result = [parameter.normalise(item, f"{where}: {name}") for item in values]
    ((first, times),) = Counter(map(repr, result)).most_common(1)
    if times > 1:
        raise UserError(f"{where}: duplicate value {first}")
    return [{name: value} for value in result]


def _range(spec: RangeKeys, where: str) -> list[Any]:
    """``{from, to, factor}`` (geometric) or ``{from, to, step}``; ``to`` is included if met."""
    start, stop = spec.first, spec.last
    if stop < start or (spec.factor and start <= 0):
        raise UserError(f"{where}: from {start} to {stop} is no range; a factor starts above 0")
    most = stop + (spec.step or start) * 1e-9  # 0.1 + 0.1 + 0.1 must still reach 0.3
    values: list[Any] = []
    while (value := start) <= most and len(values) <= MOST_COMBINATIONS:
        values.append(round(value, 12) if isinstance(value, float) else value)
        n = len(values)
        start = spec.first * spec.factor**n if spec.factor else spec.first + n * spec.step
    return values


def _exclusions(
    benchmark: Benchmark, spec: ExperimentKeys, where: str
) -> list[tuple[Expression, str]]:
    """The expressions that leave points out, each with its reason. Raises UserError."""
    rules = [(rule.when, rule.reason or rule.when.text) for rule in spec.exclude]
    for rule in settled(tuple(rule for rule, _ in rules), f"{where}.exclude", benchmark.parameters):
        if not rule.names:
            raise UserError(f"{rule.where}: '{rule.text}' contains no parameter")
    return rules


def varying_parameters(benchmark: Benchmark, points: Sequence[Point]) -> tuple[str, ...]:
    """Parameters with more than one value among the points, what they scale over first."""
    first, scale = points[0], benchmark.scale
    names = [
        name for name in benchmark.parameters if any(point[name] != first[name] for point in points)
    ]
    if scale not in names and len({benchmark.scale_of(point) for point in points}) > 1:
        names.append(scale)
    return tuple(sorted(names, key=lambda name: name != scale))
