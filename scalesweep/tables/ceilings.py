"""What a machine could do: measured ceilings of a campaign, and the peaks of data sheets.

Measured are the best points of experiments whose benchmark.yaml says ``ceiling: compute`` (its main
metric in FLOP/s) or ``ceiling: memory`` (bytes/s). All ceilings are those of a node.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from scalesweep.analysis.best_rate import best_rate, growth
from scalesweep.analysis.roofline import COMPUTE, MEMORY, UNKNOWN, Reach, Roof, reach_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import Plan, PlanExperiment
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.provenance import FACTS, IN_FORCE, MIXED, TF32_FACT
from scalesweep.tables.sweeps import Swept, swept_of

COPIES = "copies"  # the best of copies from host to GPU, of a rank
MEASURED, DATASHEET = "measured", "datasheet"
# Parameters of benchmarks that may name the type of the numbers, and what their values are.
_TYPE_PARAMETERS = ("dtype", "precision")
_TYPES = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
_TO_DEVICE = "host_to_device"
FLOAT32, TF32 = "float32", "tf32"
UNSURE = "float32 or tf32"


@dataclass(frozen=True)
class Ceiling:
    """A ceiling of a node: ``value`` in FLOP/s (compute) or bytes/s (memory); ``COPIES`` of a rank.

    Measured: the best of ``repeats`` runs, of which ``disturbed`` were (``analysis.best_rate``);
    ``low`` and ``high`` are its 95 % interval, None where there is none. ``growing``: the rate was
    still growing at the end of the sizes tried. ``dtype`` is empty for memory; ``where`` says what
    it was measured by; ``intensity`` is FLOP/byte of the size that reached it, where that is noted.
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
    intensity: float | None = None
    devices: int = 0  # of a node, where the site says what they are; 0: not known
    ranks: int = 0  # on a node, that measured it; 0: nobody did


def machine_ceilings(summary: pd.DataFrame, plan: Plan) -> list[Ceiling]:
    """The ceilings of a campaign's machine, measured ones first.

    Of each kind and type the point with the best run counts; one that was imported or simulated
    only where none was measured.
    """
    best_of: dict[tuple[str, str], tuple[bool, Ceiling]] = {}
    for experiment in plan["experiments"]:
        kind = experiment.get("ceiling")
        if kind not in (COMPUTE, MEMORY, COPIES) or not experiment["main_metric"]:
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
    every = parameters_at(experiment, point.values)
    nodes = -(-int(every["ranks"]) // int(every.get("ranks_per_node") or 1))
    if kind == COPIES:
        if every.get("direction") != _TO_DEVICE:
            return None
        nodes = int(every["ranks"])
    best = best_rate(values)
    known = not math.isnan(best.low)
    sweep = swept_of(data, point)
    return Ceiling(
        kind=kind,
        stated=MEASURED,
        dtype=numbers_in(data, point) if kind == COMPUTE else "",
        value=best.value / nodes,
        low=best.low / nodes if known else None,
        high=best.high / nodes if known else None,
        repeats=int(values.size),
        where=experiment["name"] + ("" if point.source == "measured" else f" ({point.source})"),
        disturbed=sum(best.disturbed),
        growing=sweep is not None and bool(growth(*sweep.best_rates())),
        intensity=_intensity_at_best(sweep) if kind == COMPUTE else None,
        ranks=min(int(every["ranks"]), int(every.get("ranks_per_node") or 1)),
    )


def _intensity_at_best(sweep: Swept | None) -> float | None:
    """FLOP/byte of the size with the best rate; None where it is not noted."""
    if sweep is None:
        return None
    values, rates = sweep.best_rates()
    return sweep.intensity(values[rates.index(max(rates))])


def numbers_in(data: ExperimentData, point: Point) -> str:
    """The type of the numbers that the runs of a point computed with: ``numbers_of``, and ``tf32``
    where that was in force (``UNSURE``: where runs on GPUs do not say, or differ)."""
    every = parameters_at(data.experiment, point.values)
    numbers = numbers_of(every)
    if numbers != FLOAT32 or point.source != "measured":
        return numbers
    texts = data.texts(FACTS)
    kinds = {_float32_as(texts[row]) for row in point.rows.tolist()}
    return kinds.pop() if len(kinds) == 1 else UNSURE


@lru_cache(maxsize=256)
def _float32_as(text: str | None) -> str:
    """What products of float32 were computed in, by the facts of a run."""
    if text is None:
        return FLOAT32
    facts = json.loads(text)
    recorded = dict(facts["environment"]).get(TF32_FACT)
    if recorded is not None:
        return {IN_FORCE: TF32, MIXED: UNSURE}.get(recorded, FLOAT32)
    has_gpus = any("GPUs" in dict(kind) for kind, _ in facts["hardware"])
    return UNSURE if has_gpus else FLOAT32


def numbers_of(point: Mapping[str, Any]) -> str:
    """The type of the numbers that a point computes with: float32 where nothing names one."""
    for name in _TYPE_PARAMETERS:
        if isinstance(value := point.get(name), str):
            return _TYPES.get(value, value)
    return FLOAT32


def _stated(peaks: Mapping[str, Any]) -> list[Ceiling]:
    """The peaks that a site file states."""
    ceilings = [
        Ceiling(
            COMPUTE,
            DATASHEET,
            dtype,
            float(value),
            None,
            None,
            0,
            "data sheet",
            devices=int(peaks.get("devices", 0)),
        )
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
