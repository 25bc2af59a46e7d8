"""``scaling: model``: series along which the model grows with the ranks, checked."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.point_shape import shape_of
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import number

Point = Mapping[str, Any]


def check_growing_model(
    benchmark: Benchmark, varying: Sequence[str], points: Sequence[Point], where: str
) -> None:
    """Raise UserError where the model of a series does not grow from each count to the next.

    ``where``: file and key. How much it grows is the study's: in the table that named this kind
    (D. Narayanan et al., SC 2021, table 1) a GPU has 53 to 525 million parameters.
    """
    if benchmark.scale not in varying:
        raise UserError(f"{where}: model, but '{benchmark.scale}' takes one value only")
    if fault := fault_of_growth(benchmark, varying, points):
        raise UserError(f"{where}: model: {fault}")


def fault_of_growth(
    benchmark: Benchmark, varying: Sequence[str], points: Sequence[Point]
) -> str | None:
    """Why the points are no series of a model that grows with the ranks; None where they are."""
    sizes: dict[str, dict[int, set[float]]] = {}
    telling = _telling(benchmark, varying, points)
    for point in points:
        shape = shape_of(benchmark, point)
        if shape is None or shape.parameters is None:
            return (
                "the parameters of the model have to be known at every point, and "
                f"{benchmark.name} does not say them (transformer.parameters in benchmark.yaml, or "
                "in the map of a table)"
            )
        key = canonical_json([point[name] for name in telling])
        by_count = sizes.setdefault(key, {})
        by_count.setdefault(benchmark.scale_of(point), set()).add(shape.parameters)
    for key, by_count in sizes.items():
        values = zip(telling, json.loads(key), strict=True)
        series = ", ".join(f"{name} = {value}" for name, value in values)
        at = f" in the series {series}" if series else ""
        for count, here in by_count.items():
            if len(here) > 1:
                amounts = " and ".join(number(size) for size in sorted(here))
                return f"{count} {benchmark.scale} have models of {amounts} parameters{at}"
        counts = sorted(by_count)
        for less, more in pairwise(counts):
            small, large = min(by_count[less]), min(by_count[more])
            if large <= small:
                return (
                    f"it has {number(small)} parameters at {less} {benchmark.scale} and "
                    f"{number(large)} at {more}{at}; scaling: weak or strong compares one model"
                )
    return None


def _telling(benchmark: Benchmark, varying: Sequence[str], points: Sequence[Point]) -> list[str]:
    """Varying parameters with several values at one count: others follow the count."""
    along = {benchmark.scale, *benchmark.scale_parameters}
    values: dict[tuple[str, int], set[str]] = {}
    for point in points:
        count = benchmark.scale_of(point)
        for name in varying:
            if name not in along:
                values.setdefault((name, count), set()).add(canonical_json(point[name]))
    several = {name for (name, _), seen in values.items() if len(seen) > 1}
    return [name for name in varying if name in several]
