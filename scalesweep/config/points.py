"""The points of an experiment: axes, linked entries and extra points, and what is left out."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, TypeVar

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.benchmark_keys import Divides, Refuse
from scalesweep.config.derived_parameters import Derivation
from scalesweep.config.experiment_keys import ExperimentKeys, RangeKeys
from scalesweep.config.gpus import check_gpus
from scalesweep.config.shapes import Mesh
from scalesweep.config.site import PLACEMENT, Site
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import written

MOST_COMBINATIONS = 500_000  # before some are excluded
MOST_POINTS = 50_000
Point = Mapping[str, Any]
_P = TypeVar("_P", bound=Point)


@dataclass(frozen=True)
class Points:
    """The points of an experiment by their identities, what was left out and why, and what the
    grid varies: ``whole`` are its points before any rule, ``rules`` what the campaign excludes."""

    kept: dict[str, Point]
    excluded: list[tuple[Point, str]]
    whole: Sequence[Point]
    linked: tuple[str, ...]
    rules: tuple[Expression, ...]


def expand_points(
    benchmark: Benchmark,
    derivation: Derivation,
    spec: ExperimentKeys,
    env: Point,
    site: Site,
    where: str,
) -> Points:
    """The points that an experiment states; ``env``: the variables that it sets, as parameters.

    Raises UserError for what a parameter cannot be, for a point that benchmark or site refuse, and
    where a value of the campaign is in no point.
    """
    grid = Grid.of(benchmark, spec, env, where)
    derived = [derivation.at(point) for point in grid.points(where)]
    extras = [derivation.at(point) for point in grid.extras(spec.extra, f"{where}.extra")]
    for index, (_, broken) in enumerate(extras):
        if broken:
            raise UserError(f"{where}.extra[{index}]: {broken}")
    asked = exclusions(benchmark, spec, where)
    rules = grid.rules(derivation) if site.launch else []

    def reason(point: Point, broken: str | None) -> str | None:
        for rule, why in asked:
            try:
                if rule(point):
                    return why
            except UserError:
                if broken is None:
                    raise
        faulty = (f"{benchmark.name}: {rule.reason}" for rule in rules if rule.fault(point))
        return broken or next(faulty, None)

    kept: dict[str, Point] = {}
    excluded: list[tuple[Point, str]] = []
    listed = _listed(spec, len(derived), where)
    for (point, broken), there in zip(derived, listed, strict=True):
        left_out = reason(point, broken) if there else None
        if left_out and isinstance(spec.repeats, tuple):
            raise UserError(f"{where}: a point that 'repeats' lists cannot be: {left_out}")
        if left_out:
            excluded.append((point, left_out))
        elif there:
            first = kept.setdefault(benchmark.identity_of(point), point)
            derivation.check_same(first, point, where)
    if isinstance(spec.repeats, tuple) and len(kept) < sum(listed):
        raise UserError(f"{where}.linked: with a list of repeats each entry must be another point")
    for extra, _ in extras:
        kept.setdefault(benchmark.identity_of(extra), extra)
    if len(kept) > MOST_POINTS:
        raise UserError(
            f"{where}: has {len(kept):,} points; at most {MOST_POINTS:,} are allowed: exclude "
            "some, or make several experiments"
        )
    grid.check_values(list(kept.values()), excluded, where)
    if not kept:
        reasons = "; ".join(dict.fromkeys(why for _, why in excluded))
        raise UserError(f"{where}: no point is left; all {len(excluded)} are excluded ({reasons})")
    _check_points(benchmark, site, list(kept.values()), where)
    whole = [point for point, broken in (*derived, *extras) if broken is None]
    linked = tuple(grid.linked[0]) if grid.linked else ()
    return Points(kept, excluded, whole, linked, tuple(rule for rule, _ in asked))


@dataclass(frozen=True)
class Grid:
    """What a grid is made of: the values of each axis, entries that set several parameters at
    once, and all parameters with the values of those that neither sets."""

    benchmark: Benchmark
    axes: dict[str, list[Any]]
    linked: list[dict[str, Any]]
    base: Point

    @classmethod
    def of(cls, benchmark: Benchmark, spec: ExperimentKeys, env: Point, where: str) -> "Grid":
        """That of an experiment. Raises UserError."""
        axes = {
            key: _axis_values(benchmark, key, value, f"{where}.axes.{key}")
            for key, value in spec.axes.items()
        }
        linked: list[dict[str, Any]] = []
        for index, entry in enumerate(spec.linked or ()):
            here = f"{where}.linked[{index}]"
            linked.append(benchmark.normalised(entry, here))
            if entry.keys() != linked[0].keys():
                raise UserError(
                    f"{here}: sets {', '.join(sorted(entry))}, the first entry sets "
                    f"{', '.join(sorted(linked[0]))}; all entries must set the same parameters"
                )
        fixed = benchmark.normalised(spec.fixed, f"{where}.fixed")
        places = {"axes": axes, "linked": linked[0] if linked else {}, "fixed": fixed, "env": env}
        for (place, left), (other, right) in combinations(places.items(), 2):
            if both := sorted(left.keys() & right.keys()):
                raise UserError(f"{where}: {both[0]!r} is set in {place} and in {other}; keep one")
        return cls(benchmark, axes, linked, {**benchmark.defaults, **fixed, **env})

    def points(self, where: str) -> list[dict[str, Any]]:
        """Every combination of the axes' values with every linked entry, the last axis changing
        fastest. Raises UserError for more than ``MOST_COMBINATIONS``."""
        count = math.prod(map(len, self.axes.values())) * max(1, len(self.linked))
        if count > MOST_COMBINATIONS:
            raise UserError(
                f"{where}: the grid has {count:,} combinations; at most {MOST_COMBINATIONS:,} are "
                "allowed: name fewer values, or several experiments"
            )
        return grid_points(self.base, self.axes, self.linked)

    def extras(self, entries: Sequence[Point], where: str) -> Iterator[dict[str, Any]]:
        """Points in addition; what an entry leaves open must have one value only."""
        values = {**self.axes}
        values |= {key: [e[key] for e in self.linked] for key in (self.linked or [{}])[0]}
        for index, entry in enumerate(entries):
            here = f"{where}[{index}]"
            own = self.benchmark.normalised(entry, here)
            for key, of in values.items():
                if key not in entry and any(value != of[0] for value in of):
                    raise UserError(f"{here}: must set {key!r}, which takes {len(of)} values")
            usual = {key: of[0] for key, of in values.items()}
            yield {**self.base, **usual, **own}

    @property
    def choices(self) -> list[list[str]]:
        """What the grid chooses: each axis of several values, and the linked entries as one."""
        choices = [[name] for name, values in self.axes.items() if len(values) > 1]
        return [*choices, list(self.linked[0])] if len(self.linked) > 1 else choices

    def rules(self, derivation: Derivation) -> list[Divides | Refuse | Mesh]:
        """What leaves a combination out that only the product made: the benchmark's rules that
        read several choices. Single points that break one are a mistake of the campaign."""
        read = [(rule, derivation.sources(rule.names)) for rule in self.benchmark.rules]
        return [
            rule
            for rule, names in read
            if sum(not names.isdisjoint(choice) for choice in self.choices) > 1
        ]

    def check_values(
        self, points: Sequence[Point], excluded: Sequence[tuple[Point, str]], where: str
    ) -> None:
        """Raise UserError for a value, or a linked entry, that the benchmark's rules leave in none
        of the points."""
        reasons = {f"{self.benchmark.name}: {rule.reason}" for rule in self.benchmark.rules}
        refused = [point for point, reason in excluded if reason in reasons]
        for names in self.choices if refused else ():
            used = {repr([point[name] for name in names]) for point in points}
            for point in _distinct(refused, names):
                if repr([point[name] for name in names]) not in used:
                    value = ", ".join(f"{name} = {written(point[name])}" for name in names)
                    try:
                        self.benchmark.check_point(point, where)
                    except UserError as error:
                        raise UserError(f"{error}; no point is left with {value}") from None


def grid_points(
    base: Point, axes: Mapping[str, Sequence[Any]], linked: Sequence[Point]
) -> list[dict[str, Any]]:
    """Every combination of the axes' values with every linked entry, the last axis changing
    fastest, over ``base``."""
    return [
        {**base, **entry, **dict(zip(axes, values, strict=True))}
        for entry in linked or [{}]
        for values in product(*axes.values())
    ]


def _axis_values(benchmark: Benchmark, name: str, value: Any, where: str) -> list[Any]:
    """Values of an axis in order, normalised; refuses repeated ones."""
    parameter = benchmark.parameter(name, where)
    values = _range(value, where) if isinstance(value, RangeKeys) else value
    if not isinstance(values, list):
        values = [values]
    elif "array" in parameter.types and values and not isinstance(values[0], list):
        values = [values]  # one list given for a parameter whose value is a list
    result = [parameter.normalise(item, where) for item in values]
    seen: set[str] = set()
    for item in map(repr, result):
        if item in seen:
            raise UserError(f"{where}: duplicate value {item}")
        seen.add(item)
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
    # A little slack: 0.1 + 0.1 + 0.1 must still reach 0.3.
    while value <= stop + (spec.step or start) * 1e-9:
        values.append(value)
        count = len(values)
        value = start * spec.factor**count if spec.factor else start + count * spec.step
        if count > MOST_COMBINATIONS:
            raise UserError(f"{where}: the range has more than {MOST_COMBINATIONS} values")
    return [round(v, 12) if isinstance(v, float) else v for v in values]


def exclusions(
    benchmark: Benchmark, spec: ExperimentKeys, where: str
) -> list[tuple[Expression, str]]:
    """The expressions that leave points of an experiment out, each with its reason: what it
    excludes, and what breaks what it requires.

    Raises UserError for a rule that reads no parameter, or an unknown one.
    """
    asked = [
        *((it.when, it.reason, f"exclude[{i}]") for i, it in enumerate(spec.exclude)),
        *((it.that, it.reason, f"require[{i}]") for i, it in enumerate(spec.require)),
    ]
    rules = []
    for stated, reason, place in asked:
        stated.where = f"{where}.{place}"
        if not stated.check_names(set(benchmark.parameters)).names:
            raise UserError(f"{stated.where}: '{stated.text}' contains no parameter")
        if place.startswith("exclude"):
            rules.append((stated, reason or stated.text))
        else:
            broken = Expression(f"not ({stated.text})", stated.where)
            rules.append((broken, reason or f"required: {stated.text}"))
    return rules


def _listed(spec: ExperimentKeys, combinations: int, where: str) -> list[bool]:
    """Which combinations of axes and linked entries are points: all, but where ``repeats`` is a
    list, as in campaigns of imported runs, which has the repeats of each. Raises UserError."""
    repeats = spec.repeats
    if not isinstance(repeats, tuple):
        return [True] * combinations
    if spec.extra or spec.exclude or len(repeats) != combinations or not any(repeats):
        raise UserError(
            f"{where}.repeats: a list must hold the repeats of each entry of 'linked', or of each "
            f"combination of these with 'axes' ({combinations}, the last axis changing fastest; "
            "[]: no such point), and goes with neither exclude nor extra"
        )
    return [bool(numbers) for numbers in repeats]


def _distinct(points: Iterable[_P], names: Iterable[str]) -> list[_P]:
    """The first of the points with each combination of the values of ``names``."""
    names = list(names)
    first: dict[str, _P] = {}
    for point in points:
        first.setdefault(repr([point[name] for name in names]), point)
    return list(first.values())


def _check_points(benchmark: Benchmark, site: Site, points: Sequence[Point], where: str) -> None:
    """Raise UserError for the first of the points that benchmark or site refuse."""
    starts = site.launch is not None  # else its runs were imported
    names = set(PLACEMENT)
    if starts:
        gpus = benchmark.gpus.names if benchmark.gpus else frozenset()
        names.update(gpus, benchmark.env.values(), *(rule.names for rule in benchmark.rules))
    for point in _distinct(points, names):
        if starts:
            benchmark.check_point(point, where)
            check_gpus(benchmark, site, point, where)
        site.check_point(point, where)
    if starts:
        nullable = [name for name, of in benchmark.parameters.items() if "null" in of.types]
        benchmark.command.check(points, nullable, where)
    if benchmark.transformer:  # of every point that would take as long as all other checks
        benchmark.transformer.at(points[0], f"{where}: {benchmark.name}")


def varying_parameters(benchmark: Benchmark, points: Sequence[Point]) -> tuple[str, ...]:
    """Parameters with more than one value among the points, what they scale over first."""
    first = points[0]
    names = [
        name for name in benchmark.parameters if any(point[name] != first[name] for point in points)
    ]
    others = benchmark.workers and benchmark.scale not in names
    if others and len({benchmark.scale_of(point) for point in points}) > 1:
        names.append(benchmark.scale)
    return tuple(sorted(names, key=lambda name: name != benchmark.scale))
