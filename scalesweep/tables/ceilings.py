"""What a machine could do: measured ceilings of a campaign, and the peaks of data sheets.

Measured are the best points of experiments whose benchmark.yaml says ``ceiling: compute`` (its main
metric in FLOP/s) or ``ceiling: memory`` (bytes/s). All ceilings are those of a node.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scalesweep.analysis.best_rate import best_rate, growth
from scalesweep.analysis.roofline import COMPUTE, MEMORY, UNKNOWN, Reach, Roof, reach_of
from scalesweep.core.plan_format import Plan, PlanExperiment
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.sweeps import swept_of

MEASURED, DATASHEET = "measured", "datasheet"
# Parameters of benchmarks that may name the type of the numbers, and what their values are.
_TYPE_PARAMETERS = ("dtype", "precision")
_TYPES = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
FLOAT32 = "float32"


@dataclass(frozen=True)
class Ceiling:
    """A ceiling of a node: ``value`` in FLOP/s (compute) or bytes/s (memory).

    Measured: the best of ``repeats`` runs, of which ``disturbed`` were (``analysis.best_rate``);
    ``low`` and ``high`` are its 95 % interval, None where there is none. ``growing``: the rate was
    still growing at the end of the sizes tried. ``dtype`` is empty for memory; ``where`` says what
    it was measured by.
    """

    kind: str
    stated: str  # measured | datasheet
    dtype: str
    value: float
    low: float | None
    high: float | None
    repeats: int
    where: str
    disturbed: int = 0
    growing: bool = False


def machine_ceilings(summary: pd.DataFrame, plan: Plan) -> list[Ceiling]:
    """The ceilings of a campaign's machine, measured ones first.

    Of each kind and type the point with the best run counts; one that was imported or simulated
    only where none was measured.
    """
    best_of: dict[tuple[str, str], tuple[bool, Ceiling]] = {}
    for experiment in plan["experiments"]:
        kind = experiment.get("ceiling")
        if kind not in (COMPUTE, MEMORY) or not experiment["main_metric"]:
            continue
        data = ExperimentData(summary, experiment)
        for point in data.points():
            measured = _measured(data, experiment, point, kind)
            if measured is not None:
                here, before = point.source == "measured", best_of.get((kind, measured.dtype))
                if before is None or (before[0], before[1].value) < (here, measured.value):
                    best_of[kind, measured.dtype] = (here, measured)
    return [*(ceiling for _, ceiling in best_of.values()), *_stated(plan.get("peaks", {}))]


def _measured(
    data: ExperimentData, experiment: PlanExperiment, point: Point, kind: str
) -> Ceiling | None:
    """The ceiling of a node that a point shows; None if none of its runs has finished."""
    values = data.repeats(point, (str(experiment["main_metric"]), "run"))
    if not values.size:
        return None
    every = {**experiment["fixed"], **point.values}
    nodes = -(-int(every["ranks"]) // int(every.get("ranks_per_node") or 1))
    best = best_rate(values)
    known = not math.isnan(best.low)
    sweep = swept_of(data, point)
    return Ceiling(
        kind=kind,
        stated=MEASURED,
        dtype=numbers_of(every) if kind == COMPUTE else "",
        value=best.value / nodes,
        low=best.low / nodes if known else None,
        high=best.high / nodes if known else None,
        repeats=int(values.size),
        where=experiment["name"] + ("" if point.source == "measured" else f" ({point.source})"),
        disturbed=sum(best.disturbed),
        growing=sweep is not None and bool(growth(*sweep.best_rates())),
    )


def numbers_of(point: Mapping[str, Any]) -> str:
    """The type of the numbers that a point computes with: float32 where nothing names one."""
    for name in _TYPE_PARAMETERS:
        if isinstance(value := point.get(name), str):
            return _TYPES.get(value, value)
    return FLOAT32


def _stated(peaks: Mapping[str, Any]) -> list[Ceiling]:
    """The peaks that a site file states."""
    ceilings = [
        Ceiling(COMPUTE, DATASHEET, dtype, float(value), None, None, 0, "data sheet")
        for dtype, value in peaks.get("flops", {}).items()
    ]
    if "bytes_per_s" in peaks:
        value = float(peaks["bytes_per_s"])
        ceilings.append(Ceiling(MEMORY, DATASHEET, "", value, None, None, 0, "data sheet"))
    return ceilings


def ceiling_of(ceilings: Sequence[Ceiling], kind: str, stated: str, dtype: str) -> Ceiling | None:
    """The ceiling of a kind, measured or from a data sheet; of computation for a type."""
    wanted = dtype if kind == COMPUTE else ""
    same = (
        ceiling
        for ceiling in ceilings
        if (ceiling.kind, ceiling.stated, ceiling.dtype) == (kind, stated, wanted)
    )
    return next(same, None)


def roof_of(ceilings: Sequence[Ceiling], stated: str, dtype: str) -> Roof | None:
    """Both ceilings of a node for a type; None if one is missing."""
    flops = ceiling_of(ceilings, COMPUTE, stated, dtype)
    memory = ceiling_of(ceilings, MEMORY, stated, dtype)
    return Roof(flops.value, memory.value) if flops and memory else None


def reach_of_least(ceilings: Sequence[Ceiling], stated: str, dtype: str) -> Reach:
    """How far the interval of a least time under a roof reaches; NaN where it is not known.

    A higher ceiling is a shorter time. Of the two ceilings the wider one counts at each end: which
    of them a layer hangs from is not the same.
    """
    reaches = []
    for kind in (COMPUTE, MEMORY):
        ceiling = ceiling_of(ceilings, kind, stated, dtype)
        if ceiling is None or ceiling.low is None or ceiling.high is None:
            return UNKNOWN
        reaches.append(reach_of(ceiling.value, ceiling.low, ceiling.high))
    return Reach(
        max(ceiling.above for ceiling in reaches), max(ceiling.below for ceiling in reaches)
    )
