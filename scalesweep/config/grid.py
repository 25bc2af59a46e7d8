"""The grid of an experiment: axes, linked parameters, additional points, and what is left out."""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign_keys import ExperimentKeys, RangeKeys
from scalesweep.config.derived_parameters import Derivation
from scalesweep.config.gpus import check_gpus
from scalesweep.config.site import PLACEMENT, Site
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import written

MOST_COMBINATIONS = 500_000  # before some are excluded
MOST_POINTS = 50_000
Point = Mapping[str, Any]
_P = TypeVar("_P", bound=Point)
Rule = Callable[[Point], str | None]  # why a point is left out


def axis_values(benchmark: Benchmark, name: str, value: Any, where: str) -> list[Any]:
    """Values of an axis in order, normalised; refuses repeated ones."""
    parameter = benchmark.parameter(name, where)
    values = _range(value, where) if isinstance(value, RangeKeys) else value
    if not isinstance(values, list):
        values = [values]
    elif "array" in parameter.types and values and not isinstance(values[0], list):
        values = [values]  # one list given for a parameter whose value is a list
    result = [parameter.normalise(item, where) for item in values]
    seen = set()
    for item in result:
        key = repr(item) if isinstance(item, list) else item
        if key in seen:
            raise UserError(f"{where}: duplicate value {item!r}")
        seen.add(key)
    return result


def _range(spec: RangeKeys, where: str) -> list[Any]:
    """``{from, to, factor}`` (geometric) or ``{from, to, step}``; ``to`` is included if met."""
    start, stop = spec.first, spec.last
    if stop < start:
        raise UserError(f"{where}: to = {stop} is less than from = {start}")
    if spec.factor and start <= 0:
        raise UserError(f"{where}: from = {start}: a range with a factor must start above 0")
    values: list[Any] = []
    value = start
    # Half a step of slack: 0.1 + 0.1 + 0.1 must still reach 0.3.
    slack = (spec.step or start) * 1e-9
    while value <= stop + slack:
        values.append(value)
        count = len(values)
        value = start * spec.factor**count if spec.factor else start + count * spec.step
        if count > MOST_COMBINATIONS:
            raise UserError(f"{where}: the range has more than {MOST_COMBINATIONS} values")
    return [round(v, 12) if isinstance(v, float) else v for v in values]


def linked_entries(
    benchmark: Benchmark, entries: Sequence[Point], where: str
) -> list[dict[str, Any]]:
    """Zipped parameters: every entry sets the same parameters, each to one value."""
    for index, entry in enumerate(entries):
        if entry.keys() != entries[0].keys():
            raise UserError(
                f"{where}[{index}]: sets {', '.join(sorted(entry))}, the first entry sets "
                f"{', '.join(sorted(entries[0]))}; all entries must set the same parameters"
            )
    return [benchmark.normalised(of, f"{where}[{index}]") for index, of in enumerate(entries)]


def check_overlap(places: Mapping[str, Collection[str]], where: str) -> None:
    """Raise UserError for a parameter that is set in two places; ``places``: what each sets."""
    for (place, left), (other, right) in itertools.combinations(places.items(), 2):
        if both := sorted({*left} & {*right}):
            raise UserError(f"{where}: {both[0]!r} is set in {place} and in {other}; keep one")


def grid_points(
    base: Point, axes: Mapping[str, list[Any]], linked: Sequence[Point], where: str
) -> list[dict[str, Any]]:
    """Every combination of the axes' values with every linked entry, the last axis changing
    fastest, over ``base``: all parameters, with the values of those that nothing else sets.

    Raises UserError for more than ``MOST_COMBINATIONS``.
    """
    count = math.prod(map(len, axes.values())) * max(1, len(linked))
    if count > MOST_COMBINATIONS:
        raise UserError(
            f"{where}: the grid has {count:,} combinations; at most {MOST_COMBINATIONS:,} are "
            "allowed: name fewer values, or several experiments"
        )
    return [
        {**base, **entry, **dict(zip(axes, values, strict=True))}
        for entry in linked or [{}]
        for values in itertools.product(*axes.values())
    ]


def distinct(points: Iterable[_P], names: Iterable[str]) -> list[_P]:
    """The first of the points with each combination of the values of ``names``."""
    names = list(names)
    first: dict[str, _P] = {}
    for point in points:
        first.setdefault(repr([point[name] for name in names]), point)
    return list(first.values())


def exclusions(
    benchmark: Benchmark, spec: ExperimentKeys, where: str
) -> list[tuple[Expression, str]]:
    """The expressions that leave points of an experiment out, each with its reason: what it
    excludes, and what breaks what it requires.

    Raises UserError for a rule that reads no parameter, or an unknown one.
    """
    asked = [
        *((r.when, r.reason or r.when, f"exclude[{i}]", "{}") for i, r in enumerate(spec.exclude)),
        *(
            (r.that, r.reason or f"required: {r.that}", f"require[{i}]", "not ({})")
            for i, r in enumerate(spec.require)
        ),
    ]
    rules = []
    for text, reason, place, form in asked:
        here = f"{where}.{place}"
        rule = Expression(text, here).check_names(set(benchmark.parameters))
        if not rule.names:
            raise UserError(f"{here}: '{text}' contains no parameter")
        rules.append((Expression(form.format(text), here), reason))
    return rules


def extra_points(
    benchmark: Benchmark,
    entries: Sequence[Point],
    base: Point,
    axes: Mapping[str, list[Any]],
    linked: Sequence[Point],
    where: str,
) -> Iterator[dict[str, Any]]:
    """Points in addition to the grid; what an entry leaves open must have one value only."""
    for index, entry in enumerate(entries):
        here = f"{where}[{index}]"
        choices = {**axes, **{key: [e[key] for e in linked] for key in (linked or [{}])[0]}}
        for key, values in choices.items():
            if key not in entry and any(value != values[0] for value in values):
                raise UserError(f"{here}: must set {key!r}, which takes {len(values)} values")
        usual = {key: values[0] for key, values in choices.items()}
        yield {**base, **usual, **benchmark.normalised(entry, here)}


def check_points(benchmark: Benchmark, site: Site, points: Sequence[Point], where: str) -> None:
    """Raise UserError for the first of the points that benchmark or site refuse."""
    if site.launch is None:  # its runs were imported
        for point in distinct(points, PLACEMENT):
            site.check_point(point, where)
        return
    gpus = benchmark.gpus.names if benchmark.gpus else frozenset()
    names = PLACEMENT.union(gpus, benchmark.env.values(), *(r.names for r in benchmark.rules))
    for point in distinct(points, names):
        benchmark.check_point(point, where)
        check_gpus(benchmark, site, point, where)
        site.check_point(point, where)
    benchmark.command.check(points)


def impossible_combinations(
    benchmark: Benchmark,
    axes: Mapping[str, list[Any]],
    linked: Sequence[Point],
    derivation: Derivation,
) -> list[Rule]:
    """What the product of axes leaves out: the rules of the benchmark that read several of the
    grid's choices (axes, and the linked entries as one).

    What the campaign says itself, a value that goes with none of the others among it, is a mistake
    (``check_values``), and so are single points that break a rule.
    """
    varied = {name for name, values in axes.items() if len(values) > 1}
    entry = set(linked[0]) if len(linked) > 1 else set()

    return [
        derivation.excluding(rule.broken, rule.names, f"{benchmark.name}: {rule.reason}")
        for rule in benchmark.rules
        if len((read := derivation.sources(rule.names)) & varied) + bool(read & entry) > 1
    ]


def check_values(
    benchmark: Benchmark,
    axes: Mapping[str, list[Any]],
    linked: Sequence[Point],
    points: Sequence[Point],
    impossible: Sequence[Point],
    where: str,
) -> None:
    """Raise UserError for a value, or a linked entry, that is in none of the ``points``.

    ``impossible``: points of the grid that rules of the benchmark left out.
    """
    choices = [[name] for name, values in axes.items() if len(values) > 1]
    if len(linked) > 1:
        choices.append(list(linked[0]))
    for names in choices:
        used = {repr([point[name] for name in names]) for point in points}
        for point in distinct(impossible, names):
            if repr([point[name] for name in names]) not in used:
                value = ", ".join(f"{name} = {written(point[name])}" for name in names)
                try:
                    benchmark.check_point(point, where)
                except UserError as error:
                    raise UserError(f"{error}; no point is left with {value}") from None


def varying_parameters(
    benchmark: Benchmark, points: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Parameters with more than one value among the points, what they scale over first."""
    first = points[0]
    names = [
        name for name in benchmark.parameters if any(point[name] != first[name] for point in points)
    ]
    others = benchmark.workers and benchmark.scale not in names
    if others and len({benchmark.scale_of(point) for point in points}) > 1:
        names.append(benchmark.scale)
    return tuple(sorted(names, key=lambda name: name != benchmark.scale))
