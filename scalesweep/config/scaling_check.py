"""What a kind of scaling says of a series: the work at its scales, checked."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.scaling_kinds import MODEL, OF_SAMPLES

Point = Mapping[str, Any]
_KEPT = {"weak": "samples per {}", "strong": "total number of samples"}


def check_scaling(
    benchmark: Benchmark, scaling: str, varying: Sequence[str], points: Sequence[Point], where: str
) -> None:
    """A weak series keeps the work per rank, a strong one the work in all: refuse a mix-up, a
    series in which most amounts of work are at one scale alone."""
    scale = benchmark.scale
    if scale in benchmark.parameters and any((point[scale] or 0) < 1 for point in points):
        raise UserError(f"{where}.scale: {scale} must be 1 or more at every point")
    checked = scaling in OF_SAMPLES and benchmark.work is not None
    if (checked or scaling == MODEL) and scale not in varying:
        raise UserError(f"{where}.scaling: {scaling}, but '{scale}' takes one value only")
    if not checked or not (mixed := _mixed(benchmark, scaling, varying, points)):
        return
    other = "strong" if scaling == "weak" else "weak"
    fits = "none" if _mixed(benchmark, other, varying, points) else other
    kept = _KEPT[scaling].format(scale.removesuffix("s"))
    raise UserError(
        f"{where}.scaling: {scaling} keeps the {kept} the same at several numbers of {scale}, but "
        f"{mixed}; set scaling: {fits}, or derive what decides it from {scale}"
    )


def _mixed(
    benchmark: Benchmark, scaling: str, varying: Sequence[str], points: Sequence[Point]
) -> str:
    """The work at two scales of the first such series; empty: none."""
    left_out = {benchmark.scale, *benchmark.work_parameters, *benchmark.scale_parameters}
    shared = [name for name in varying if name not in left_out]
    series: dict[str, dict[float, list[int]]] = {}
    for point in points:
        scale, work = benchmark.scale_of(point), benchmark.total_work(point) or 0
        amounts = series.setdefault(canonical_json([point[name] for name in shared]), {})
        at = amounts.setdefault(work / scale if scaling == "weak" else work, [])
        at.extend([scale] if scale not in at else [])
    for amounts in series.values():
        alone = {scales[0]: work for work, scales in amounts.items() if len(scales) == 1}
        if len(amounts) > 1 and 2 * len(alone) > len(amounts):
            return "it is " + " and ".join(f"{alone[at]:g} at {at}" for at in sorted(alone)[:2])
    return ""
