"""The table ``demand``: the rate at which samples are read, against what training consumes."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.analysis.stats import mean_interval, ratio_interval, ratio_p
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PlanExperiment, parameter_of
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.consumers import DUMMY, Consumer
from scalesweep.tables.making import TableInputs, point_columns
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.read_ceilings import reads_files

RATE = "total_throughput"
# Parameters that may differ without a word: how long it was measured, and by which numbers.
_SILENT = frozenset({"ranks", "ranks_per_node", "epochs", "seed", "input"})


@dataclass(frozen=True, kw_only=True)
class Demand(PointRow, table="demand"):
    """A point that reads, in a phase, and training on dummy input on as many ranks and nodes."""

    phase: str = column("`init` (the first epoch) or `later`")
    where: str = column("the training: its experiment, and what tells it from others there")
    rate: Estimate = column("samples that are read, of all ranks", "samples/s")
    consumed: Estimate = column("samples that training consumes, of all ranks", "samples/s")
    factor: Estimate | None = column(
        "`consumed` / `rate`; above 1 training waits for its input. Missing where samples differ",
        "1",
    )
    factor_p: float | None = column("p value of `factor` being 1", "1")
    differs: str = column("parameters that both have, where they differ: reading and training")
    refused: str = column("parameters of the samples that differ: no factor")


def demand_rows(inputs: TableInputs) -> Iterator[Demand]:
    """A row per point, phase and training on as many ranks and nodes."""
    data, entry = inputs.data, inputs.data.experiment
    consumers = inputs.machine.consumers
    if not consumers or not reads_files(entry):
        return
    for point in inputs.points:
        every = parameters_at(entry, point.values)
        if every.get("input") in DUMMY or "input" in every or every.get("step_gflop"):
            continue  # it trains, or consumes as training would
        for consumer in consumers:
            if consumer.layout != Layout.of(every) or consumer.source != point.source:
                continue
            refused, differs = _differences(entry, every, consumer)
            for phase in EPOCH_PHASES:
                read = data.repeats(point, (RATE, phase))
                if not read.size or read.mean() <= 0:
                    continue
                span = data.interval(point, (RATE, phase))
                used = np.array(consumer.rates)
                own = mean_interval(used)
                factor, p = (None, None) if refused else _factor(used, read, data.level)
                yield Demand(
                    **point_columns(point),
                    phase=phase,
                    where=consumer.where,
                    rate=Estimate.of(float(read.mean()), span.low, span.high),
                    consumed=Estimate.of(float(used.mean()), own.low, own.high),
                    factor=factor,
                    factor_p=p,
                    differs=differs,
                    refused=refused,
                )


def _factor(used: Any, read: Any, level: float) -> tuple[Estimate, float | None]:
    """What training consumes over what is read, and the p value of its being 1."""
    factor = float(used.mean() / read.mean())
    bounds = ratio_interval(used, read, level=level)
    p = ratio_p(used, read, math.log(factor))
    return Estimate.of(factor, bounds.low, bounds.high), p if math.isfinite(p) else None


def _differences(
    entry: PlanExperiment, every: Mapping[str, Any], consumer: Consumer
) -> tuple[str, str]:
    """What of the samples differs, which no comparison allows, and what else does; in words."""
    pairs = {
        name: f"{name} {_words(value)} and {_words(consumer.point[name])}"
        for name, value in every.items()
        if name in consumer.point and name not in _SILENT and consumer.point[name] != value
    }
    samples = [n for n in pairs if parameter_of(entry, n).get("workload")]
    return (
        "; ".join(pairs[name] for name in samples),
        "; ".join(text for name, text in pairs.items() if name not in samples),
    )


def _words(value: Any) -> str:
    return " x ".join(map(str, value)) if isinstance(value, list) else str(value)
