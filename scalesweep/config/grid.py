"""The grid of an experiment: axes, linked parameters, additional points, and what is left out."""

import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.config.benchmark import Benchmark, PointRule
from scalesweep.config.gpus import check_gpus
from scalesweep.config.growing_model import check_growing_model
from scalesweep.config.lazy_sequence import LazySequence
from scalesweep.config.site import PLACEMENT, Site
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.core.files import canonical_json
from scalesweep.core.scaling_kinds import MODEL, OF_SAMPLES

MAX_POINTS = 1_000_000


def axis_values(benchmark: Benchmark, name: str, value: Any, where: str) -> list[Any]:
    """Values of an axis in order, normalised; refuses repeated ones."""
    parameter = benchmark.parameter(name, where)
    values = _range(value, where) if isinstance(value, dict) else value
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


def _range(spec: Mapping[str, Any], where: str) -> list[Any]:
    """``{from, to, factor}`` (geometric) or ``{from, to, step}``; ``to`` is included if met."""
    if not {"from", "to"} <= spec.keys() or not {"factor", "step"} & spec.keys():
        raise UserError(f"{where}: a range must be {{from, to, factor}} or {{from, to, step}}")
    start, stop = spec["from"], spec["to"]
    if stop < start:
        raise UserError(f"{where}: to = {stop} is less than from = {start}")
    if "factor" in spec and start <= 0:
        raise UserError(f"{where}: from = {start}: a range with a factor must start above 0")
    values: list[Any] = []
    value = start
    # Half a step of slack: 0.1 + 0.1 + 0.1 must still reach 0.3.
    slack = spec.get("step", start) * 1e-9
    while value <= stop + slack:
        values.append(value)
        count = len(values)
        value = (
            start * spec["factor"] ** count if "factor" in spec else start + count * spec["step"]
        )
        if count > MAX_POINTS:
            raise UserError(f"{where}: the range has more than {MAX_POINTS} values")
    return [round(v, 12) if isinstance(v, float) else v for v in values]


def linked_entries(benchmark: Benchmark, entries: list[Any], where: str) -> list[dict[str, Any]]:
    """Zipped parameters: every entry sets the same parameters, each to one value."""
    result = []
    for index, entry in enumerate(entries):
        here = f"{where}[{index}]"
        result.append(
            {
                key: benchmark.parameter(key, here).normalise(value, here)
                for key, value in entry.items()
            }
        )
        if result[0].keys() != result[-1].keys():
            raise UserError(
                f"{here}: sets {', '.join(sorted(entry))}, the first entry sets "
                f"{', '.join(sorted(result[0]))}; all entries must set the same parameters"
            )
    return result


def check_overlap(places: Mapping[str, Collection[str]], where: str) -> None:
    """Raise UserError for a parameter that is set in two places; ``places``: what each sets."""
    for (place, left), (other, right) in itertools.combinations(places.items(), 2):
        if both := sorted({*left} & {*right}):
            raise UserError(f"{where}: {both[0]!r} is set in {place} and in {other}; keep one")


@dataclass(frozen=True)
class Grid:
    """Every combination of the axes' values with every linked entry, over the other parameters.

    ``base``: all parameters, with the values of those that no axis and no entry sets. What takes
    time is done once for each value, not for each of up to ``MAX_POINTS`` points.
    """

    base: Mapping[str, Any]
    axes: Mapping[str, list[Any]]
    linked: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        """Combinations, of which some may be the same point."""
        return math.prod(map(len, self.axes.values())) * max(1, len(self.linked))

    def points(self) -> Iterator[dict[str, Any]]:
        """The combinations, the last axis changing fastest."""
        for fixed in self._fixed():
            for values in itertools.product(*self.axes.values()):
                point = fixed.copy()
                point.update(zip(self.axes, values, strict=True))
                yield point

    def point(self, index: int) -> dict[str, Any]:
        """The combination at an index of ``points()``."""
        point: dict[str, Any] = {}
        for name, values in reversed([*self.axes.items()]):
            index, place = divmod(index, len(values))
            point[name] = values[place]
        entry = self.linked[index] if self.linked else {}
        return {**self.base, **entry, **point}

    def values(self, name: str) -> Iterator[Any]:
        """The value that one parameter has in each of ``points()``."""
        place = list(self.axes).index(name) if name in self.axes else None
        for fixed in self._fixed():
            for values in itertools.product(*self.axes.values()):
                yield fixed[name] if place is None else values[place]

    def identities(self, benchmark: Benchmark) -> Iterator[str]:
        """``Benchmark.identity`` of each of ``points()``, in the same order."""
        parts = {
            name: [benchmark.fragment(name, value) for value in values]
            for name, values in self.axes.items()
        }
        for fixed in self._fixed():
            rest = {
                name: [fragment]
                for name, value in fixed.items()
                if name not in parts and (fragment := benchmark.fragment(name, value))
            }
            columns = [*parts, *rest]
            # Parameters in the order of their names, combinations in the order of the axes.
            order = sorted(range(len(columns)), key=columns.__getitem__)
            for row in itertools.product(*parts.values(), *rest.values()):
                yield benchmark.identity(map(row.__getitem__, order))

    def sources(self, names: Collection[str]) -> frozenset[str]:
        """What decides on the values of ``names``: nothing else does."""
        return frozenset(names)

    def distinct(self, names: Collection[str]) -> Iterator[dict[str, Any]]:
        """Of the points those that differ in what is read of them: all values of ``names``."""
        axes = {name: v if name in names else v[:1] for name, v in self.axes.items()}
        return Grid(self.base, axes, self.linked).points()

    def spread(self) -> Iterator[dict[str, Any]]:
        """Few of the points, the first one first, with every value of every parameter."""
        for fixed in self._fixed():
            for place in range(max(map(len, self.axes.values()), default=1)):
                yield fixed | {name: v[min(place, len(v) - 1)] for name, v in self.axes.items()}

    def _fixed(self) -> Iterator[dict[str, Any]]:
        for entry in self.linked or [{}]:
            yield {**self.base, **entry}


class GridPoints(LazySequence[Mapping[str, Any]]):
    """The points of a grid and others behind them, each made when it is first asked for.

    A point is one object, however often it is asked for.
    """

    def __init__(self, grid: Grid, others: Sequence[Mapping[str, Any]]) -> None:
        """No two of these may be the same."""
        self._grid = grid
        self._made: list[Mapping[str, Any] | None] = [*[None] * len(grid), *others]
        self._whole = False

    def __len__(self) -> int:
        """Points in all."""
        return len(self._made)

    def item(self, index: int) -> Mapping[str, Any]:
        """One point."""
        point = self._made[index]
        if point is None:
            point = self._made[index] = self._grid.point(index)
        return point

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """All of them, which are made at once: faster than one by one."""
        if not self._whole:
            for place, made in enumerate(self._grid.points()):
                if self._made[place] is None:
                    self._made[place] = made
            self._whole = True
        for point in self._made:
            assert point is not None
            yield point


def exclusions(benchmark: Benchmark, rules: list[Any], where: str) -> list[tuple[Expression, str]]:
    """The rules that leave points out, each with its reason."""
    result = []
    for index, rule in enumerate(rules):
        text, reason = (rule, rule) if isinstance(rule, str) else (rule["when"], rule["reason"])
        expression = Expression(text, f"{where}[{index}]").check_names(set(benchmark.parameters))
        if not expression.names:
            raise UserError(f"{where}[{index}]: '{text}' contains no parameter")
        result.append((expression, reason))
    return result


def extra_points(
    benchmark: Benchmark, entries: list[Mapping[str, Any]], grid: Grid, where: str
) -> Iterator[dict[str, Any]]:
    """Points in addition to the grid; what an entry leaves open must have one value only."""
    linked = grid.linked
    for index, entry in enumerate(entries):
        here = f"{where}[{index}]"
        point = dict(grid.base)
        choices = {**grid.axes, **{key: [e[key] for e in linked] for key in (linked or [{}])[0]}}
        for key, values in choices.items():
            if key in entry:
                continue
            if any(value != values[0] for value in values):
                raise UserError(f"{here}: must set {key!r}, which takes {len(values)} values")
            point[key] = values[0]
        for key, value in entry.items():
            point[key] = benchmark.parameter(key, here).normalise(value, here)
        yield point


def check_points(
    benchmark: Benchmark,
    site: Site,
    grid: Grid,
    points: Sequence[Mapping[str, Any]],
    extras: Iterable[Mapping[str, Any]],
    rules: Iterable[PointRule],
    where: str,
) -> None:
    """Raise UserError for the first of the ``points`` that benchmark or site refuse.

    ``extras``: those of them that are not of the grid; ``rules``: those of the benchmark that
    others may break.
    """
    starts = site.launch is not None  # else its runs were imported

    def check(point: Mapping[str, Any]) -> None:
        if starts:
            benchmark.check_point(point, where)
            check_gpus(benchmark, site, point, where)
        site.check_point(point, where)

    gpus = PLACEMENT.union(benchmark.gpus.names if benchmark.gpus else (), benchmark.env.values())
    try:
        for point in extras:
            check(point)
        for point in grid.distinct(PLACEMENT):
            site.check_point(point, where)
        for point in grid.distinct(gpus) if starts else ():
            check_gpus(benchmark, site, point, where)
        broken = starts and any(any(map(r.broken, grid.distinct(r.names))) for r in rules)
    except UserError:  # of a point that is excluded, perhaps, or not of the first
        broken = True
    if broken:
        for point in points:
            check(point)
    if starts:
        benchmark.command.check(points)


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


def check_scaling(
    benchmark: Benchmark,
    scaling: str,
    varying: tuple[str, ...],
    points: Sequence[Mapping[str, Any]],
    where: str,
    whole: Sequence[Mapping[str, Any]] = (),
) -> None:
    """A weak series keeps the work per rank, a strong one the work in all: refuse a mix-up.

    ``whole``: the points before some were left out, where they were. An amount of work that is
    left at one scale alone is no mix-up then, if others of its series are at several.
    """
    scale = benchmark.scale
    if scale in benchmark.parameters and any((point[scale] or 0) < 1 for point in points):
        raise UserError(f"{where}.scale: {scale} must be 1 or more at every point")
    if scaling == MODEL:
        check_growing_model(benchmark, varying, points, f"{where}.scaling")
    if scaling not in OF_SAMPLES or benchmark.work is None:
        return
    if scale not in varying:
        raise UserError(f"{where}.scaling: {scaling}, but '{scale}' takes one value only")
    reason = _lonely_work(benchmark, scaling, varying, points, whole)
    if reason is None:
        return
    other = "strong" if scaling == "weak" else "weak"
    fits = _lonely_work(benchmark, other, varying, points, whole) is None
    unit = scale.removesuffix("s")
    raise UserError(
        f"{where}.scaling: {scaling} keeps the {_KEPT[scaling].format(unit)} the same at several "
        f"numbers of {scale}, but {reason}; "
        + (
            f"scaling: {other} fits, which keeps the {_KEPT[other].format(unit)}"
            if fits
            else "scaling: none compares the points without a series"
        )
    )


_KEPT = {"weak": "samples per {}", "strong": "total number of samples"}
# Of each series, by the text of what its points share: the scales at which it has each amount.
_Series = Mapping[str, Mapping[float, set[int]]]


def _lonely_work(
    benchmark: Benchmark,
    scaling: str,
    varying: tuple[str, ...],
    points: Sequence[Mapping[str, Any]],
    whole: Sequence[Mapping[str, Any]],
) -> str | None:
    """The first amount of work that one scale alone has in a series of several amounts.

    A series of one scale has none: it is no series.
    """
    scale = benchmark.scale
    left_out = {scale, *benchmark.work_parameters, *benchmark.scale_parameters}
    shared = [name for name in varying if name not in left_out]
    before: _Series | None = None
    for key, works in _works(benchmark, scaling, shared, points).items():
        if len(set().union(*works.values())) == 1:
            continue
        for work, seen in works.items():
            if len(seen) == 1 and len(works) > 1:
                if before is None:
                    before = _works(benchmark, scaling, shared, whole)
                several = any(len(scales) > 1 for scales in works.values())
                if several and len(before.get(key, {}).get(work, ())) > 1:
                    continue
                amounts = ", ".join(
                    f"{w:g} at {_counted(min(n), scale)}" for w, n in sorted(works.items())
                )
                values = zip(shared, json.loads(key), strict=True)
                series = ", ".join(f"{name} = {value}" for name, value in values)
                at = f" in the series {series}" if series else ""
                return f"{work:g} occurs at {_counted(min(seen), scale)} only{at} ({amounts})"
    return None


def _works(
    benchmark: Benchmark,
    scaling: str,
    shared: Sequence[str],
    points: Iterable[Mapping[str, Any]],
) -> _Series:
    series: dict[str, dict[float, set[int]]] = {}
    for point in points:
        count = benchmark.scale_of(point)
        total = benchmark.total_work(point) or 0
        work = total / count if scaling == "weak" else total
        key = canonical_json([point[name] for name in shared])
        series.setdefault(key, {}).setdefault(work, set()).add(count)
    return series


def _counted(count: int, scale: str) -> str:
    return f"{count} {scale.removesuffix('s') if count == 1 else scale}"
