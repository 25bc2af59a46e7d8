"""What a kind of scaling says of a series: the work, or the model, at its scales, checked."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import number
from scalesweep.core.scaling_kinds import MODEL, OF_SAMPLES

Point = Mapping[str, Any]
_KEPT = {"weak": "samples per {}", "strong": "total number of samples"}
# Of each series, by what its points share: the amounts, and the scales that have each of them.
_Series = dict[str, dict[float, set[int]]]


def check_scaling(
    benchmark: Benchmark,
    scaling: str,
    varying: Sequence[str],
    points: Sequence[Point],
    where: str,
    whole: Sequence[Point] = (),
) -> None:
    """A weak series keeps the work per rank, a strong one the work in all, and with ``model`` the
    model grows: refuse a mix-up.

    ``whole``: the points before some were left out, where they were. An amount of work that is
    left at one scale alone is no mix-up then, if others of its series are at several.
    """
    scale = benchmark.scale
    if scale in benchmark.parameters and any((point[scale] or 0) < 1 for point in points):
        raise UserError(f"{where}.scale: {scale} must be 1 or more at every point")
    checked = scaling == MODEL or (scaling in OF_SAMPLES and benchmark.work is not None)
    if checked and scale not in varying:
        raise UserError(f"{where}.scaling: {scaling}, but '{scale}' takes one value only")
    if scaling == MODEL and (fault := fault_of_growth(benchmark, varying, points)):
        raise UserError(f"{where}.scaling: model: {fault}")
    if scaling == MODEL or not checked:
        return
    reason = _lonely_work(benchmark, scaling, varying, points, whole)
    if reason is None:
        return
    other = "strong" if scaling == "weak" else "weak"
    fits = _lonely_work(benchmark, other, varying, points, whole) is None
    kept = {kind: text.format(scale.removesuffix("s")) for kind, text in _KEPT.items()}
    raise UserError(
        f"{where}.scaling: {scaling} keeps the {kept[scaling]} the same at several numbers of "
        f"{scale}, but {reason}; "
        + (
            f"scaling: {other} fits, which keeps the {kept[other]}"
            if fits
            else "scaling: none compares the points without a series"
        )
    )


def _lonely_work(
    benchmark: Benchmark,
    scaling: str,
    varying: Sequence[str],
    points: Sequence[Point],
    whole: Sequence[Point],
) -> str | None:
    """The first amount of work that a single scale has in a series of several amounts."""
    scale = benchmark.scale
    left_out = {scale, *benchmark.work_parameters, *benchmark.scale_parameters}
    shared = [name for name in varying if name not in left_out]

    def works(of: Iterable[Point]) -> _Series:
        series: _Series = {}
        for point in of:
            count, total = benchmark.scale_of(point), benchmark.total_work(point) or 0
            amounts = series.setdefault(_key(point, shared), {})
            amounts.setdefault(total / count if scaling == "weak" else total, set()).add(count)
        return series

    before = works(whole)
    for key, amounts in works(points).items():
        if len(amounts) == 1 or len(set().union(*amounts.values())) == 1:
            continue
        several = any(len(counts) > 1 for counts in amounts.values())
        for work, counts in amounts.items():
            if len(counts) > 1 or (several and len(before.get(key, {}).get(work, ())) > 1):
                continue
            listed = ", ".join(
                f"{w:g} at {_counted(min(n), scale)}" for w, n in sorted(amounts.items())
            )
            at = _series_words(key, shared)
            return f"{work:g} occurs at {_counted(min(counts), scale)} only{at} ({listed})"
    return None


def fault_of_growth(
    benchmark: Benchmark, varying: Sequence[str], points: Sequence[Point]
) -> str | None:
    """Why the points are no series of a model that grows with the ranks; None where they are.

    How much it grows is the study's: in the table that named this kind (D. Narayanan et al.,
    SC 2021, table 1) a GPU has 53 to 525 million parameters.
    """
    scale, model = benchmark.scale, benchmark.transformer
    shared = _apart(benchmark, varying, points)
    series: dict[str, dict[int, set[float]]] = {}
    for point in points:
        shape = model.at(point, benchmark.name) if model else None
        if shape is None or shape.parameters is None:
            return (
                "the parameters of the model have to be known at every point, and "
                f"{benchmark.name} does not say them (transformer.parameters in benchmark.yaml, or "
                "in the map of a table)"
            )
        sizes = series.setdefault(_key(point, shared), {})
        sizes.setdefault(benchmark.scale_of(point), set()).add(shape.parameters)
    for key, sizes in series.items():
        at = _series_words(key, shared)
        for count, here in sizes.items():
            if len(here) > 1:
                amounts = " and ".join(number(size) for size in sorted(here))
                return f"{count} {scale} have models of {amounts} parameters{at}"
        for (less, small), (more, large) in pairwise(sorted(sizes.items())):
            if min(large) <= min(small):
                return (
                    f"it has {number(min(small))} parameters at {less} {scale} and "
                    f"{number(min(large))} at {more}{at}; scaling: weak or strong compares one "
                    "model"
                )
    return None


def _apart(benchmark: Benchmark, varying: Sequence[str], points: Sequence[Point]) -> list[str]:
    """Varying parameters with several values at one count: others follow the count."""
    values: dict[tuple[str, int], set[str]] = {}
    for point in points:
        for name in {*varying} - {benchmark.scale} - benchmark.scale_parameters:
            at = values.setdefault((name, benchmark.scale_of(point)), set())
            at.add(canonical_json(point[name]))
    several = {name for (name, _), seen in values.items() if len(seen) > 1}
    return [name for name in varying if name in several]


def _key(point: Point, shared: Sequence[str]) -> str:
    return canonical_json([point[name] for name in shared])


def _series_words(key: str, shared: Sequence[str]) -> str:
    values = zip(shared, json.loads(key), strict=True)
    series = ", ".join(f"{name} = {value}" for name, value in values)
    return f" in the series {series}" if series else ""


def _counted(count: int, scale: str) -> str:
    return f"{count} {scale.removesuffix('s') if count == 1 else scale}"
