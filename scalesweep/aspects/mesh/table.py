"""The tables ``mesh_steps``, ``pipeline_idle`` and ``pipeline_stages``."""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scalesweep.analysis.mesh_step import TERMS, ideal_idle, median_rank, mesh_step, pipeline_idle
from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.roofline import COMPUTE
from scalesweep.analysis.stats import linear_interval
from scalesweep.analysis.step_account import STEPS, StepAccount
from scalesweep.analysis.types import Floats
from scalesweep.config.memory import planned_memory
from scalesweep.config.mesh import value_at
from scalesweep.config.point_shape import planned_mesh, planned_shape
from scalesweep.core.errors import UserError
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.ceilings import DATASHEET, MEASURED, Ceiling, ceiling_of, numbers_in
from scalesweep.tables.epoch_curves import ACCOUNT
from scalesweep.tables.machine import whole_point
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.run_arrays import read_arrays

_log = logging.getLogger(__name__)
_MS = 1e3
_PASSES = ("span_forward", "span_backward")


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


@dataclass(frozen=True, kw_only=True)
class PipelineStage(PointRow, table="pipeline_stages"):
    """A stage of a pipeline whose program numbers its ranks stage by stage (the mesh that
    torch_training notes): its ranks' passes and waiting in a step."""

    stage: int = column("the stage (of several on a rank the first), from 0", "1")
    ranks: int = column("ranks that compute it", "1")
    busy: Estimate = column("forward and backward pass, mean over steps and ranks", "ms")
    busy_quarter: float = column("a quarter of the steps are below, mean over runs", "ms")
    busy_three_quarters: float = column("a quarter of the steps are above, mean over runs", "ms")
    idle: Estimate = column("waiting for neighbours, mean over steps and ranks", "ms")
    idle_quarter: float = column("a quarter of the steps are below, mean over runs", "ms")
    idle_three_quarters: float = column("a quarter of the steps are above, mean over runs", "ms")


@dataclass
class _Measured:
    """What the runs of a point say, a value for each run."""

    terms: list[dict[str, float]] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    unequal: list[float] = field(default_factory=list)
    # Of each run [quartile of steps and their mean at last, stage], s; None without its mesh.
    stages: list[tuple[Floats, Floats] | None] = field(default_factory=list)
    ranks: int = 0


def mesh_rows(inputs: TableInputs) -> Iterator[MeshStep | PipelineIdle | PipelineStage]:
    """The rows of all three tables, from the arrays of the runs, which are read once.

    Of a benchmark that declares a mesh, and of runs with stamps of forward and backward pass.
    """
    data = inputs.data
    if "mesh" not in data.experiment or inputs.runs is None:
        return
    accounts = _accounts(data)
    for point in inputs.points:
        rows = [row for row in point.rows.tolist() if row in accounts]
        if not rows:
            continue
        peak = _peak(inputs, point)
        measured = _Measured()
        for row in rows:
            _add(inputs, row, accounts[row], peak, measured)
        yield from _steps(point, measured, peak)
        yield from _idle(data, point, measured)
        yield from _stages(point, measured)


def _accounts(data: ExperimentData) -> dict[int, StepAccount]:
    """Accounts by step with both passes, by row of the summary."""
    known = {}
    texts = data.texts(ACCOUNT)
    for row in data.row_of.values():
        if (text := texts[row]) is not None:
            account = StepAccount.from_json(json.loads(text))
            if account.form == STEPS and account.forward is not None:
                known[row] = account
    return known


def _add(
    inputs: TableInputs,
    row: int,
    account: StepAccount,
    peak: Ceiling | None,
    measured: _Measured,
) -> None:
    """What a run says; nothing where its files cannot be read, with a line."""
    run_id = str(inputs.data.summary["run_id"].iloc[row])
    assert inputs.runs is not None
    try:
        record, samples = read_arrays(inputs.runs / run_id)
    except (UserError, KeyError, TypeError, *NOT_ARRAYS, *NO_USE) as error:
        inputs.data.unread.append(run_id)
        _log.warning("%s: %s: its step is not taken apart", run_id, error)
        return
    ranks = account.ranks
    computing = rank_matrix(samples, "span_compute", ranks)
    if computing is None:
        return
    layout = (record.get("notes") or {}).get("layout") or {}
    rank = median_rank(computing)
    flop, again = (_of_rank(layout.get(name), rank, ranks) for name in ("flop", "recomputed_flop"))
    terms = mesh_step(account, flop, again, None if peak is None else peak.value)
    if terms is None:
        return
    measured.terms.append(terms)
    measured.steps.append(account.elapsed)
    waits = rank_matrix(samples, "span_pipeline_wait", ranks)
    passes = [each for name in _PASSES if (each := rank_matrix(samples, name, ranks)) is not None]
    if waits is not None and len(passes) == len(_PASSES):
        busy: Floats = np.sum(passes, axis=0)
        idle, unequal = pipeline_idle(waits, busy)
        measured.idle.append(idle)
        measured.unequal.append(unequal)
        count = (layout.get("mesh") or {}).get("pp")
        by_stage = None
        if isinstance(count, int) and count > 1 and ranks % count == 0:
            by_stage = _by_stage(busy, count), _by_stage(waits, count)
        measured.stages.append(by_stage)
        measured.ranks = ranks


def _by_stage(times: Floats, stages: int) -> Floats:
    """Quartiles over the steps, then their mean, of the mean rank of each stage, s; ``times``: s
    ``[step, rank]``, ranks numbered stage by stage."""
    of_stage = times.reshape(len(times), stages, -1).mean(axis=2)
    quartiles = np.quantile(of_stage, (0.25, 0.75), axis=0)
    return np.asarray(np.vstack([quartiles, of_stage.mean(axis=0)]), np.float64)


def _of_rank(values: Any, rank: int, ranks: int) -> float | None:
    """A rank's number of what a record notes by rank; None where it does not."""
    if not isinstance(values, list) or len(values) != ranks:
        return None
    value = values[rank]
    return float(value) if isinstance(value, int | float) else None


def _peak(inputs: TableInputs, point: Point) -> Ceiling | None:
    """FLOP/s of a rank: a node's measured ceiling for its numbers, else the data sheet's peak,
    shared evenly by the ranks of a node."""
    numbers = numbers_in(inputs.data, point)
    on_node = Layout.of(whole_point(inputs.data, point)).on_node
    for stated in (MEASURED, DATASHEET):
        ceiling = ceiling_of(inputs.machine.ceilings, COMPUTE, stated, numbers)
        if ceiling is not None:
            return Ceiling(
                COMPUTE, stated, numbers, ceiling.value / on_node, None, None, ceiling.repeats,
                ceiling.where,
            )  # fmt: skip
    return None


def _steps(point: Point, measured: _Measured, peak: Ceiling | None) -> Iterator[MeshStep]:
    if not measured.terms:
        return
    step = float(np.mean(measured.steps)) * _MS
    for term in TERMS:
        # A term that only some of the runs show is none of their mean.
        if not all(term in terms for terms in measured.terms):
            continue
        values = np.array([terms[term] for terms in measured.terms]) * _MS
        known = term in ("least", "recompute") and peak is not None
        yield MeshStep(
            **point_columns(point), term=term, value=estimate(values), step=step,
            share=float(values.mean()) / step, peak=peak.value if known and peak else None,
            peak_from=peak.where if known and peak else "",
        )  # fmt: skip


def _idle(data: ExperimentData, point: Point, measured: _Measured) -> Iterator[PipelineIdle]:
    whole = whole_point(data, point)
    shape = _schedule(data, whole)
    if not measured.idle or shape is None:
        return
    stages, virtual, micro_batches = shape
    formula = ideal_idle(stages, virtual, micro_batches)
    idle = np.array(measured.idle)
    yield PipelineIdle(
        **point_columns(point), stages=stages, virtual_stages=virtual, micro_batches=micro_batches,
        formula=formula, idle=estimate(idle), difference=estimate(idle - formula),
        unequal=float(np.mean(measured.unequal)),
    )  # fmt: skip


def _stages(point: Point, measured: _Measured) -> Iterator[PipelineStage]:
    known = [of for of in measured.stages if of is not None]
    if not known or len(known) < len(measured.stages):
        return
    # [run, quartiles and mean, stage]
    busy, idle = (np.array([of[which] for of in known]) * _MS for which in (0, 1))
    stages = busy.shape[2]
    for stage in range(stages):
        (busy_low, busy_high, _), (idle_low, idle_high, _) = (
            times[:, :, stage].mean(axis=0).tolist() for times in (busy, idle)
        )
        yield PipelineStage(
            **point_columns(point), stage=stage, ranks=measured.ranks // stages,
            busy=estimate(busy[:, 2, stage]), busy_quarter=busy_low, busy_three_quarters=busy_high,
            idle=estimate(idle[:, 2, stage]), idle_quarter=idle_low, idle_three_quarters=idle_high,
        )  # fmt: skip


def _schedule(data: ExperimentData, point: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Stages, virtual stages and micro-batches of a point; None where one is not known, or there
    is no pipeline."""
    mesh, shape = planned_mesh(data.experiment, point), planned_shape(data.experiment, point)
    stages = (mesh or {}).get("pp", 1)
    if stages < 2 or shape is None or shape.accumulation is None:
        return None
    memory = planned_memory(data.experiment)
    virtual = memory.fields.get("virtual_stages") if memory else None
    count = 1 if virtual is None else value_at(virtual, point)
    return None if count is None else (stages, int(count), shape.accumulation)


def estimate(values: Floats) -> Estimate:
    """The mean over runs with its 95 % interval by Student's t."""
    bounds = linear_interval(values)
    return Estimate.of(float(values.mean()), bounds.low, bounds.high)


MAKERS = (Maker((MeshStep, PipelineIdle, PipelineStage), mesh_rows),)
