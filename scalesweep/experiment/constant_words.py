"""What a kind of scaling keeps the same along a series, in words with its amount."""

from collections.abc import Sequence

from scalesweep.config.shapes import planned_shape
from scalesweep.core.formatting import number
from scalesweep.core.plan_format import PlanExperiment, PlanRun
from scalesweep.core.scaling_kinds import MODEL, NONE, WEAK

_NEAR = 1e-9  # of amounts that are divided by counts


def constant_words(entry: PlanExperiment) -> str:
    """What was constant along the series of an experiment: its amount where all series have the
    same, ``the same ... along each series`` where they differ; empty without scaling.

    As planned: of runs without a result too. Where a benchmark does not declare its work, nothing
    was checked, which is said.
    """
    if entry["scaling"] == NONE:
        return ""
    if entry["scaling"] == MODEL:
        return _of_model(entry)
    scale = entry["scale"]
    worker = scale.removesuffix("s") if entry["scaling"] == WEAK else ""
    amounts = [
        work / (_count(run, scale) if worker else 1)
        for run in entry["runs"]
        if (work := run.get("work")) is not None
    ]
    if not amounts:
        return "as the campaign states it: the benchmark does not declare its samples"
    of = f"of a {worker}" if worker else "of a run"
    if max(amounts) - min(amounts) <= _NEAR * max(amounts):
        return f"constant: {number(amounts[0])} samples {of}"
    return f"constant along each series: the samples {of}"


def _of_model(entry: PlanExperiment) -> str:
    """The sizes of the model, in all and of a rank, from the smallest count to the largest."""
    sizes: dict[int, float] = {}
    for run in entry["runs"]:
        shape = planned_shape(entry, {**entry["fixed"], **run["point"]})
        if shape is not None and shape.parameters is not None:
            sizes[_count(run, entry["scale"])] = shape.parameters
    ideal = "FLOP/s of a rank ideally stay the same, samples/s do not"
    if not sizes:
        return f"the model grows with the ranks; {ideal}"
    each = [size / count for count, size in sizes.items()]
    return (
        f"the model grows with the ranks: {_span(list(sizes.values()))} parameters, {_span(each)} "
        f"of a {entry['scale'].removesuffix('s')}; {ideal}"
    )


def _span(values: Sequence[float]) -> str:
    low, high = (f"{number(value / 1e6)} million" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _count(run: PlanRun, scale: str) -> int:
    return int(run["point"][scale])
