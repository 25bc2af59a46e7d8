"""The table ``pipeline_idle``: what stages of a pipeline wait for, beside the ideal.

A pipeline of p stages, v of them on each rank, and m micro-batches ideally idles (p - 1) / (v m) of
what a rank computes (D. Narayanan et al., SC 2021, section 2.2).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.stats import mean_of, signed_mean_of
from scalesweep.config.shapes import value_at
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding, Rule, declared_evidence, estimate_of, number_of
from scalesweep.planning.planned_shapes import planned, planned_shape
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.machine import whole_point
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.run_arrays import each_run

# A difference below this share of the computing time is no reason to doubt the formula.
NOTABLE = 0.02


@dataclass(frozen=True, kw_only=True)
class PipelineIdle(PointRow, table="pipeline_idle"):
    """A point with a pipeline whose ranks keep what they wait for."""

    stages: int = column("p: ranks in a row", "1")
    virtual_stages: int = column("v: stages of each of these ranks", "1")
    micro_batches: int = column("m: of a step", "1")
    formula: float = column("(p - 1) / (v m)", "1")
    idle: Estimate = column(
        "waiting of the ranks for their neighbours / their forward and backward pass, mean over "
        "runs; handing messages over is in it",
        "1",
    )
    difference: Estimate = column("idle - formula", "1")
    unequal: float = column(
        "what unequal stages cause: forward and backward pass of the busiest rank / the mean - 1",
        "1",
    )


def idle_rows(inputs: TableInputs) -> Iterator[PipelineIdle]:
    """A row per point of a benchmark that declares a mesh, if its runs keep passes and waiting."""
    data = inputs.data
    if "mesh" not in data.experiment or inputs.runs is None:
        return
    for point in inputs.points:
        shape = _schedule(data, whole_point(data, point))
        rows = point.rows.tolist() if shape else ()
        runs = np.array([
            waiting
            for _, record, samples in each_run(data, rows, inputs.runs, "its pipeline")
            if (waiting := _waiting(samples, record["point"]["ranks"]))
        ])  # fmt: skip
        if shape is None or not runs.size:
            continue
        stages, virtual, batches = shape
        formula = (stages - 1) / (virtual * batches)
        yield PipelineIdle(
            **point_columns(point), stages=stages, virtual_stages=virtual, micro_batches=batches,
            formula=formula, idle=mean_of(runs[:, 0]), unequal=float(runs[:, 1].mean()),
            difference=signed_mean_of(runs[:, 0] - formula),
        )  # fmt: skip


def _waiting(samples: Mapping[str, Any], ranks: int) -> tuple[float, float] | None:
    """Idle over computing time of a pipeline's ranks, and what unequal stages cause of it; None if
    a run does not keep both."""
    names = ("span_pipeline_wait", "span_forward", "span_backward")
    waits, forward, backward = (rank_matrix(samples, name, ranks) for name in names)
    if waits is None or forward is None or backward is None:
        return None
    busy = (forward + backward).mean(axis=0)
    whole = float(busy.mean())
    return float(waits.mean()) / whole, float(busy.max()) / whole - 1


def _schedule(data: ExperimentData, point: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Stages, virtual stages and micro-batches of a point; None if one is not known, or there is
    no pipeline."""
    mesh, shape = planned(data.experiment).mesh, planned_shape(data.experiment, point)
    stages = ((mesh and mesh.at(point)) or {}).get("pp", 1)
    if stages < 2 or shape is None or shape.accumulation is None:
        return None
    memory = planned(data.experiment).memory
    virtual = memory.virtual_stages if memory else None
    count = 1 if virtual is None else value_at(virtual, point)
    return None if count is None else (stages, int(count), shape.accumulation)


def pipeline_idle(results: ExperimentResults) -> list[Finding]:
    """The point whose idle time differs most from (p - 1) / (v m), if its interval leaves that
    out by 2 % or more: a note, which estimates."""
    apart = [
        row for row in results.of(PipelineIdle)
        if (row.difference.low or 0.0) * (row.difference.high or 0.0) > 0
        and abs(row.difference.value) >= NOTABLE
    ]  # fmt: skip
    if not apart:
        return []
    most = max(apart, key=lambda row: abs(row.difference.value))
    numbers = (
        estimate_of("idle", most.idle, "1"), number_of("formula", most.formula, "1"),
        number_of("unequal", most.unequal, "1"),
    )  # fmt: skip
    return [
        Finding(
            results.name, "pipeline idle", NOTE, subject=results.describe(most.row),
            numbers=numbers, evidence=declared_evidence(results, most),
        )
    ]  # fmt: skip


MAKER = Maker(PipelineIdle, idle_rows)
RULES = (
    Rule(
        "pipeline idle", pipeline_idle,
        says={
            NOTE: "{subject}: pipeline stages wait for {idle:%} of their computing time; "
            "the ideal is {formula:%}, unequal stages cause {unequal:%}."
        },
        next={NOTE: "give the stages equal work, or a step more micro-batches"},
    ),
)  # fmt: skip
