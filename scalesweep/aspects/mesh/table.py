"""The tables ``mesh_steps`` and ``pipeline_idle``: the step of ranks on a mesh, by its axes.

Of the rank whose computation is the lower median:

    step = least            FLOP of the model / peak
         + recompute        FLOP that the backward pass computes again / peak
         + slower           what forward and backward pass take beyond both
         + optimizer, input, host, imbalance
         + data, tensor, pipeline    exposed exchange and waiting by axis of the mesh
         + barrier, rest

The ideal of a pipeline of p stages (v of them on each rank) and m micro-batches idles
(p - 1) / (v m) of what a rank computes (D. Narayanan et al., SC 2021, section 2.2).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.roofline import COMPUTE as RATE
from scalesweep.analysis.stats import mean_of, signed_mean_of
from scalesweep.analysis.step_account import STEPS, StepAccount
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.measured_steps import stated_accounts
from scalesweep.config.shapes import planned, planned_mesh, planned_shape, value_at
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.machine import DATASHEET, MEASURED, numbers_in, whole_point
from scalesweep.tables.making import (
    Maker,
    TableInputs,
    point_columns,
)
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.run_arrays import each_run

_MS = 1e3
# Terms of an account that make up one of a mesh's step.
_OF_ACCOUNT: Mapping[str, Sequence[str]] = {
    "optimizer": ("optimizer",), "input": ("input",),
    "host": ("checkpoint", "validation", "logging", "between"),
    "imbalance": ("persistent", "alternating", "stalls"), "data": ("transfer", "sharded"),
    "tensor": ("tensor",), "pipeline": ("pipeline",), "barrier": ("barrier",),
}  # fmt: skip
TERMS = ("least", "recompute", "slower", "compute", *_OF_ACCOUNT, "rest")


@dataclass(frozen=True, kw_only=True)
class MeshStep(PointRow, table="mesh_steps"):
    """A term of a point's step, of points with stamps of their passes; terms add up to ``step``."""

    term: str = column(
        "least, recompute, slower (or compute, where no peak is known), optimizer, input, host, "
        "imbalance, data, tensor, pipeline, barrier, rest (docs/methods/time_breakdown.md)"
    )
    value: Estimate = column("the term, mean over runs", "ms")
    step: float = column("the step", "ms")
    share: float = column("value / step", "1")
    peak: float | None = column("FLOP/s of a rank that `least` is of", "FLOP/s")
    peak_from: str = column("the experiment that measured it, or data sheet; empty without")


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


def mesh_rows(inputs: TableInputs) -> Iterator[MeshStep | PipelineIdle]:
    """The rows of both tables, of a benchmark that declares a mesh and keeps its passes."""
    data = inputs.data
    if "mesh" not in data.experiment or inputs.runs is None:
        return
    accounts = {
        row: account
        for row, account in stated_accounts(data).items()
        if account.form == STEPS and account.parts
    }
    for point in inputs.points:
        peak, where = _peak(inputs, point)
        steps: list[tuple[dict[str, float], float]] = []
        idle: list[tuple[float, float]] = []
        known = [row for row in point.rows.tolist() if row in accounts]
        for row, record, samples in each_run(data, known, inputs.runs, "its step by axis"):
            if "span_compute" in samples:
                account = accounts[row]
                terms = _terms(account, *_flop(record, samples, account.ranks), peak)
                steps.append((terms, account.elapsed))
                idle += _waiting(samples, account.ranks)
        if steps:
            yield from _step_rows(point, steps, peak, where)
        if idle and (shape := _schedule(data, whole_point(data, point))):
            yield _idle_row(point, np.array(idle), *shape)


def _flop(
    record: Mapping[str, Any], samples: Mapping[str, Any], ranks: int
) -> tuple[float | None, float | None]:
    """FLOP of the model in a step, and what is recomputed, of the rank in the middle."""
    means = samples["span_compute"].mean(axis=0)
    rank = int(np.argsort(means, kind="stable")[(ranks - 1) // 2])
    layout = (record.get("notes") or {}).get("layout") or {}
    lists = (layout.get(name) for name in ("flop", "recomputed_flop"))
    flop, again = (each[rank] if each and len(each) == ranks else None for each in lists)
    return flop, again


def _terms(
    account: StepAccount, flop: float | None, again: float | None, peak: float | None
) -> dict[str, float]:
    """Seconds of a step by term, which add up to ``account.elapsed``.

    Without FLOP or peak ``compute`` stands for the first three, without what is recomputed
    ``slower`` for it too.
    """
    working = account.parts.get("forward", 0.0) + account.parts.get("backward", 0.0)
    terms = {"compute": working}
    if flop and peak:
        terms = {"least": flop / peak} | ({} if again is None else {"recompute": again / peak})
        terms["slower"] = working - math.fsum(terms.values())
    for name, parts in _OF_ACCOUNT.items():
        known = [value for part in parts if (value := account.term(part)) is not None]
        if known:
            terms[name] = math.fsum(known)
    rest = account.elapsed - math.fsum(terms.values())
    return terms | {"rest": rest if abs(rest) > 1e-12 else 0.0}


def _waiting(samples: Mapping[str, Any], ranks: int) -> list[tuple[float, float]]:
    """Idle over computing time of a pipeline's ranks, and what unequal stages cause of it; empty
    where a run does not keep both."""
    names = ("span_pipeline_wait", "span_forward", "span_backward")
    waits, forward, backward = (rank_matrix(samples, name, ranks) for name in names)
    if waits is None or forward is None or backward is None:
        return []
    busy = (forward + backward).mean(axis=0)
    whole = float(busy.mean())
    return [(float(waits.mean()) / whole, float(busy.max()) / whole - 1)]


def _peak(inputs: TableInputs, point: Point) -> tuple[float | None, str]:
    """FLOP/s of a rank and whose it is: a node's measured ceiling for its numbers, else the data
    sheet's peak, shared evenly by the ranks of a node."""
    numbers = numbers_in(inputs.data, point)
    on_node = Layout.of(whole_point(inputs.data, point)).on_node
    for stated in (MEASURED, DATASHEET):
        ceiling = inputs.machine.ceiling(RATE, stated, numbers)
        if ceiling is not None:
            return ceiling.value / on_node, ceiling.where
    return None, ""


def _step_rows(
    point: Point, steps: Sequence[tuple[dict[str, float], float]], peak: float | None, where: str
) -> Iterator[MeshStep]:
    step = float(np.mean([length for _, length in steps])) * _MS
    for term in TERMS:
        # A term that only some of the runs show is none of their mean.
        if not all(term in terms for terms, _ in steps):
            continue
        value = signed_mean_of([terms[term] * _MS for terms, _ in steps])
        known = term in ("least", "recompute")
        yield MeshStep(
            **point_columns(point), term=term, value=value, step=step, share=value.value / step,
            peak=peak if known else None, peak_from=where if known else "",
        )  # fmt: skip


def _idle_row(
    point: Point, runs: Floats, stages: int, virtual_stages: int, micro_batches: int
) -> PipelineIdle:
    """``runs``: idle time and what unequal stages cause, ``[run, 2]``."""
    formula = (stages - 1) / (virtual_stages * micro_batches)
    return PipelineIdle(
        **point_columns(point), stages=stages, virtual_stages=virtual_stages,
        micro_batches=micro_batches, formula=formula, idle=mean_of(runs[:, 0]),
        difference=signed_mean_of(runs[:, 0] - formula), unequal=float(runs[:, 1].mean()),
    )  # fmt: skip


def _schedule(data: ExperimentData, point: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Stages, virtual stages and micro-batches of a point; None where one is not known, or there
    is no pipeline."""
    mesh, shape = planned_mesh(data.experiment, point), planned_shape(data.experiment, point)
    stages = (mesh or {}).get("pp", 1)
    if stages < 2 or shape is None or shape.accumulation is None:
        return None
    memory = planned(data.experiment).memory
    virtual = memory.virtual_stages if memory else None
    count = 1 if virtual is None else value_at(virtual, point)
    return None if count is None else (stages, int(count), shape.accumulation)


MAKERS = (Maker((MeshStep, PipelineIdle), mesh_rows),)
