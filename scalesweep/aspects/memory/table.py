"""The tables ``memory`` and ``memory_fit``: the model of bytes per rank, and how it does.

A point is judged by a fit that has not seen it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.memory_fit import (
    FITS,
    TOO_LARGE,
    UNCERTAIN,
    MemoryFit,
    fit_memory,
    fits_without,
)
from scalesweep.analysis.types import Floats
from scalesweep.config.memory import Memory, PointMemory, planned_memory, planned_point_memory
from scalesweep.core.causes import Cause
from scalesweep.core.files import canonical_json
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.status import Status
from scalesweep.table.declared import DeclaredRow, PointRow, column
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.peaks import peak_bytes
from scalesweep.tables.points import ExperimentData, Point

GIB = 2**30  # bytes
RAN, OUT_OF_MEMORY, FAILED = "ran", "out of memory", "failed otherwise"
RIGHT, WRONG = "right", "wrong"
_OUT_OF_MEMORY = {Cause.OUT_OF_MEMORY, Cause.GPU_OUT_OF_MEMORY}


@dataclass(frozen=True, kw_only=True)
class MemoryRow(PointRow, table="memory"):
    """What the model says of a point, and what its runs say."""

    weights: float = column("bytes of weights", "bytes")
    gradients: float = column("bytes of gradients", "bytes")
    optimizer: float = column("bytes of the optimiser's state", "bytes")
    activations: float = column("bytes of activations", "bytes")
    logits: float = column("bytes of logits", "bytes")
    overhead: float = column("bytes that every rank has besides", "bytes")
    needed: float = column(
        "their sum: bytes of the rank that needs the most, by a fit without this point", "bytes"
    )
    expected: float = column(
        "the same of the rank that the peak is of (memory.rank in benchmark.yaml)", "bytes"
    )
    measured: float | None = column("measured peak, mean over runs", "bytes")
    ratio: float | None = column("measured / expected", "1")
    device: float | None = column("bytes that the rank has", "bytes")
    verdict: str = column("fits, uncertain or will not fit; empty where the device is not known")
    outcome: str = column("ran, out of memory or failed otherwise; empty where nothing was run")
    obstacle: str = column(
        "what keeps a run from starting whatever memory there is; empty where nothing is known"
    )
    called: str = column(
        "right or wrong; empty where the verdict is uncertain, or a run failed otherwise"
    )


@dataclass(frozen=True, kw_only=True)
class MemoryFitRow(DeclaredRow, table="memory_fit"):
    """The constants that the plan's next predictions take."""

    states: float = column("factor of weights, gradients and optimiser", "1")
    activations: float = column("factor of activations", "1")
    logits: float = column("factor of logits", "1")
    overhead: float = column("bytes that every rank has besides", "bytes")
    spread: float = column("standard deviation of log(measured / predicted)", "1")
    fragments: float = column("what a device must have of what tensors need", "1")
    covariance: list[float] = column("covariance of the constants over their defaults, by rows")
    peaks: int = column("measured peaks that they are fitted to", "1")
    failures: int = column("runs out of memory that they are fitted to", "1")
    error: float | None = column(
        "median of |measured / expected - 1|, each point by a fit without it", "1"
    )
    within: float | None = column("that which 90 % of the points are within", "1")
    right: int = column("points of which fits or will not fit is called right", "1")
    wrong: int = column("points of which it is called wrong", "1")
    uncertain: int = column("points that ran or were out of memory and are called uncertain", "1")


class _Judged(NamedTuple):
    """A point with the bytes of its parts and device, its peak, and how its runs ended."""

    point: Point
    parts: Floats
    obstacle: str
    device: float | None
    peak: float | None
    outcome: str


def memory_rows(inputs: TableInputs) -> Iterator[MemoryRow | MemoryFitRow]:
    """A row per point whose bytes can be worked out, and one of the constants."""
    data = inputs.data
    memory = planned_memory(data.experiment)
    if memory is None:
        return
    judged = list(_judged(data, inputs.points, memory))
    if not judged:
        return
    fit, fits = _fits(judged, memory)
    rows = [_row(each, each_fit, memory) for each, each_fit in zip(judged, fits, strict=True)]
    yield from rows
    errors = [abs(row.ratio - 1) for row in rows if row.ratio is not None]
    known = [row for row in rows if row.outcome in (RAN, OUT_OF_MEMORY) and row.verdict]
    yield MemoryFitRow(
        **dict(zip(("states", "activations", "logits", "overhead"), fit.constants.values.tolist(),
                   strict=True)),
        spread=fit.spread,
        fragments=fit.fragments,
        covariance=list(fit.covariance),
        peaks=fit.points,
        failures=fit.failures,
        error=float(np.median(errors)) if errors else None,
        within=float(np.quantile(errors, 0.9)) if errors else None,
        right=sum(row.called == RIGHT for row in known),
        wrong=sum(row.called == WRONG for row in known),
        uncertain=sum(row.verdict == UNCERTAIN for row in known),
    )  # fmt: skip


def _judged(data: ExperimentData, points: Sequence[Point], memory: Memory) -> Iterator[_Judged]:
    """The points of which the model can say something."""
    peak = peak_bytes(data, memory)
    ends = _ends(data)
    for point in points:
        parameters = parameters_at(data.experiment, point.values)
        known = planned_point_memory(data.experiment, parameters)
        if not isinstance(known, PointMemory):
            continue
        measured = None
        if peak is not None and point.rows.size:
            values = peak[point.rows]
            measured = float(np.mean(values)) if np.isfinite(values).all() else None
        key = canonical_json({name: point.values[name] for name in data.axes})
        outcome = RAN if point.rows.size else ends.get(key, "")
        yield _Judged(point, known.parts, known.obstacle, known.device, measured, outcome)


def _ends(data: ExperimentData) -> dict[str, str]:
    """How the runs of points ended that have failed: out of memory, or otherwise."""
    ends: dict[str, str] = {}
    for run in data.experiment["runs"]:
        if run["status"] == Status.FAILED:
            key = canonical_json({name: run["point"][name] for name in data.axes})
            if run["cause"] in _OUT_OF_MEMORY:
                ends[key] = OUT_OF_MEMORY
            else:
                ends.setdefault(key, FAILED)
    return ends


def _fits(judged: Sequence[_Judged], memory: Memory) -> tuple[MemoryFit, list[MemoryFit]]:
    """The fit to all, and for each point that to the others; all with the same fragments."""
    peaks = [(each, each.peak) for each in judged if each.peak is not None]
    measured = [(each.parts, peak) for each, peak in peaks]
    devices = [math.nan if each.device is None else each.device for each, _ in peaks]
    failed = [
        (each.parts, each.device)
        for each in judged
        if each.outcome == OUT_OF_MEMORY and each.device is not None
    ]
    fit = fit_memory(measured, failed, devices, memory.rank)
    others = iter(fits_without(measured, memory.rank))
    fits = [fit if each.peak is None else next(others) for each in judged]
    return fit, [replace(each, fragments=fit.fragments, failures=fit.failures) for each in fits]


def _row(judged: _Judged, fit: MemoryFit, memory: Memory) -> MemoryRow:
    point, parts, obstacle, device, peak, outcome = judged
    stage = int(fit.predicted(parts).sum(axis=1).argmax())
    states = fit.constants.states * parts[stage, :3]
    needed = fit.needed(parts)
    expected = fit.needed(parts, memory.rank)
    verdict = "" if device is None else fit.verdict(parts, device)
    called = ""
    if verdict in (FITS, TOO_LARGE) and outcome in (RAN, OUT_OF_MEMORY):
        called = RIGHT if (verdict == FITS) == (outcome == RAN) else WRONG
    columns: Mapping[str, Any] = dict(
        zip(("weights", "gradients", "optimizer"), states.tolist(), strict=True)
    )
    return MemoryRow(
        **point_columns(point),
        **columns,
        activations=fit.constants.activations * float(parts[stage, 3]),
        logits=fit.constants.logits * float(parts[stage, 4]),
        overhead=fit.constants.overhead,
        needed=needed,
        expected=expected,
        measured=peak,
        ratio=None if peak is None else peak / expected,
        device=device,
        verdict=verdict,
        outcome=outcome,
        obstacle=obstacle,
        called=called,
    )


MAKERS = (Maker((MemoryRow, MemoryFitRow), memory_rows),)
