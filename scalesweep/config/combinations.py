"""Combinations of a grid that its benchmark refuses.

Where a product of axes makes them they are left out, each with the benchmark's reason. What the
campaign says itself, a value that goes with none of the others among it, is a mistake.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from scalesweep.config.benchmark import Benchmark, PointRule
from scalesweep.config.grid import Grid
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import written

Point = Mapping[str, Any]


class LeftOut(NamedTuple):
    """Which points of a grid a rule leaves out, and why."""

    rule: Callable[[Point], bool]
    reason: str


def impossible_combinations(benchmark: Benchmark, grid: Grid) -> list[LeftOut]:
    """What the product leaves out: by each rule of the benchmark that reads several of the grid's
    choices (axes, and the linked entries as one) and that points of the grid break."""
    result = []
    for rule in benchmark.rules:
        if _is_of_product(rule, grid):
            refused = [point for point in grid.distinct(rule.names) if rule.broken(point)]
            if refused:
                names = sorted(grid.sources(rule.names) & _chosen(grid))
                reason = f"{benchmark.name}: {rule.reason}"
                result.append(LeftOut(_lookup(names, refused), reason))
    return result


def other_rules(benchmark: Benchmark, grid: Grid) -> Iterator[PointRule]:
    """The rules of the benchmark that no product breaks: by them a point is refused."""
    return (rule for rule in benchmark.rules if not _is_of_product(rule, grid))


def check_values(
    benchmark: Benchmark,
    grid: Grid,
    points: Sequence[Point],
    impossible: Sequence[Point],
    where: str,
) -> None:
    """Raise UserError for a value, or a linked entry, that is in none of the ``points``.

    ``impossible``: points of the grid that were left out as such.
    """
    choices = [[name] for name, values in grid.axes.items() if len(values) > 1]
    if len(grid.linked) > 1:
        choices.append(list(grid.linked[0]))
    for names in choices:
        values_of = itemgetter(*names)
        used = {repr(values_of(point)) for point in points}
        for point in impossible:
            if repr(values_of(point)) not in used:
                value = ", ".join(f"{name} = {written(point[name])}" for name in names)
                try:
                    benchmark.check_point(point, where)
                except UserError as error:
                    raise UserError(f"{error}; no point is left with {value}") from None


def _chosen(grid: Grid) -> set[str]:
    """The parameters that take several values in a grid."""
    names = {name for name, values in grid.axes.items() if len(values) > 1}
    return names | (set(grid.linked[0]) if len(grid.linked) > 1 else set())


def _is_of_product(rule: PointRule, grid: Grid) -> bool:
    names = grid.sources(rule.names) & _chosen(grid)
    axes = names & grid.axes.keys()
    return len(axes) + bool(names - axes) > 1


def _lookup(names: Sequence[str], refused: Iterable[Point]) -> Callable[[Point], bool]:
    """Whether a point has the values of one of the ``refused`` in ``names``, two or more."""
    values_of = itemgetter(*names)
    try:
        known = {values_of(point) for point in refused}
    except TypeError:  # a value that is a list
        texts = {repr(values_of(point)) for point in refused}
        return lambda point: repr(values_of(point)) in texts
    return lambda point: values_of(point) in known
