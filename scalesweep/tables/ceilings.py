"""What a machine could do: measured ceilings of a campaign, and the peaks of data sheets.

Measured are the best points of experiments whose benchmark.yaml says ``ceiling: compute`` (its main
metric in FLOP/s) or ``ceiling: memory`` (bytes/s). All ceilings are those of a node.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from scalesweep.analysis.roofline import COMPUTE, MEMORY, Roof
from scalesweep.analysis.stats import mean_interval
from scalesweep.core.plan_format import Plan, PlanExperiment
from scalesweep.tables.points import ExperimentData, Point

MEASURED, DATASHEET = "measured", "datasheet"
# Parameters of benchmarks that may name the type of the numbers, and what their values are.
_TYPE_PARAMETERS = ("dtype", "precision")
_TYPES = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
FLOAT32 = "float32"


@dataclass(frozen=True)
class Ceiling:
    """A ceiling of a node: ``value`` in FLOP/s (compute) or bytes/s (memory).

    ``low`` and ``high`` are its 95 % interval over ``repeats``, None where there is none; ``dtype``
    is empty for memory; ``where`` says what it was measured by.
    """

    kind: str
    stated: str  # measured | datasheet
    dtype: str
    value: float
    low: float | None
    high: float | None
    repeats: int
    where: str


def machine_ceilings(summary: pd.DataFrame, plan: Plan) -> list[Ceiling]:
    """The ceilings of a campaign's machine, measured ones first.

    Of each kind and type the point with the highest mean over its repeats counts; one that was
    imported or simulated only where none was measured.
    """
    found: dict[tuple[str, str], tuple[bool, Ceiling]] = {}
    for experiment in plan["experiments"]:
        kind = experiment.get("ceiling")
        if kind not in (COMPUTE, MEMORY) or not experiment["main_metric"]:
            continue
        data = ExperimentData(summary, experiment)
        for point in data.points():
            one = _measured(data, experiment, point, kind)
            if one is not None:
                here, before = point.source == "measured", found.get((kind, one.dtype))
                if before is None or (before[0], before[1].value) < (here, one.value):
                    found[kind, one.dtype] = (here, one)
    return [*(one for _, one in found.values()), *_stated(plan.get("peaks", {}))]


def _measured(
    data: ExperimentData, experiment: PlanExperiment, point: Point, kind: str
) -> Ceiling | None:
    """The ceiling of a node that a point shows; None if none of its runs has finished."""
    values = data.repeats(point, (str(experiment["main_metric"]), "run"))
    if not values.size:
        return None
    every = {**experiment["fixed"], **point.values}
    nodes = -(-int(every["ranks"]) // int(every.get("ranks_per_node") or 1))
    bounds = mean_interval(values)
    known = bounds.low == bounds.low  # NaN without an interval
    return Ceiling(
        kind=kind,
        stated=MEASURED,
        dtype=numbers_of(every) if kind == COMPUTE else "",
        value=float(values.mean()) / nodes,
        low=float(bounds.low) / nodes if known else None,
        high=float(bounds.high) / nodes if known else None,
        repeats=int(values.size),
        where=experiment["name"] + ("" if point.source == "measured" else f" ({point.source})"),
    )


def numbers_of(point: Mapping[str, Any]) -> str:
    """The type of the numbers that a point computes with: float32 where nothing names one."""
    for name in _TYPE_PARAMETERS:
        if isinstance(value := point.get(name), str):
            return _TYPES.get(value, value)
    return FLOAT32


def _stated(peaks: Mapping[str, Any]) -> list[Ceiling]:
    """The peaks that a site file states."""
    found = [
        Ceiling(COMPUTE, DATASHEET, dtype, float(value), None, None, 0, "data sheet")
        for dtype, value in peaks.get("flops", {}).items()
    ]
    if "bytes_per_s" in peaks:
        value = float(peaks["bytes_per_s"])
        found.append(Ceiling(MEMORY, DATASHEET, "", value, None, None, 0, "data sheet"))
    return found


def ceiling_of(ceilings: Sequence[Ceiling], kind: str, stated: str, dtype: str) -> Ceiling | None:
    """The ceiling of a kind, measured or from a data sheet; of computation for a type."""
    wanted = dtype if kind == COMPUTE else ""
    same = (one for one in ceilings if (one.kind, one.stated, one.dtype) == (kind, stated, wanted))
    return next(same, None)


def roof_of(ceilings: Sequence[Ceiling], stated: str, dtype: str) -> Roof | None:
    """Both ceilings of a node for a type; None if one is missing."""
    flops = ceiling_of(ceilings, COMPUTE, stated, dtype)
    memory = ceiling_of(ceilings, MEMORY, stated, dtype)
    return Roof(flops.value, memory.value) if flops and memory else None


def half_width(ceilings: Sequence[Ceiling], stated: str, dtype: str) -> float:
    """Half the width of a roof's interval on the logarithmic scale; NaN where it is not known.

    That of the wider one of the two ceilings: which of them a layer hangs from is not the same.
    """
    widths = []
    for kind in (COMPUTE, MEMORY):
        one = ceiling_of(ceilings, kind, stated, dtype)
        known = one is not None and one.low is not None and one.high is not None and one.low > 0
        widths.append(math.log(one.high / one.low) / 2 if known else math.nan)  # type: ignore[union-attr,operator]
    return math.nan if any(math.isnan(width) for width in widths) else max(widths)


def ceilings_table(ceilings: Sequence[Ceiling]) -> pd.DataFrame:
    """A row per ceiling, of a node; columns are the fields of ``Ceiling``, and ``unit``."""
    rows = [
        {**asdict(one), "unit": "FLOP/s" if one.kind == COMPUTE else "bytes/s"} for one in ceilings
    ]
    names = ["kind", "stated", "dtype", "value", "low", "high", "unit", "repeats", "where"]
    frame = pd.DataFrame({name: [row[name] for row in rows] for name in names})
    for name in ("value", "low", "high"):
        frame[name] = frame[name].astype("float64")
    frame.attrs["units"] = {}
    return frame
