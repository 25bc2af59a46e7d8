"""The tables ``memory`` and ``memory_fit``: the model of bytes per rank, and how it does.

A point is judged by a fit that has not seen it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.memory_model import (
    FITS,
    PARTS,
    TOO_LARGE,
    UNCERTAIN,
    MemoryFit,
    fit_memory,
    fits_without,
)
from scalesweep.config.shapes import Memory
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import number, percent
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.points_table import Cell, Table, declared_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import NOTE, Finding, Rule, declared_evidence, number_of
from scalesweep.planning.planned_shapes import GIB, PointMemory, planned, point_memory
from scalesweep.table.declared import DeclaredRow, PointRow, column
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.peaks import peak_bytes, peak_of
from scalesweep.tables.points import ExperimentData, Point

RAN, OUT_OF_MEMORY, FAILED = "ran", "out of memory", "failed otherwise"
RIGHT, WRONG = "right", "wrong"
_OUT_OF_MEMORY = {Cause.OUT_OF_MEMORY, Cause.GPU_OUT_OF_MEMORY}


@dataclass(frozen=True, kw_only=True)
class MemoryRow(PointRow, table="memory"):
    """What the model says of a point, and what its runs say."""

    weights: float = column("bytes of weights", "bytes")
    gradients: float = column("bytes of gradients at the peak", "bytes")
    optimizer: float = column("bytes of the optimiser's state", "bytes")
    activations: float = column("bytes of activations at the peak", "bytes")
    logits: float = column("bytes of logits at the peak", "bytes")
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
    peaks: int = column("measured peaks that they are fitted to", "1")
    error: float | None = column(
        "median of |measured / expected - 1|, each point by a fit without it", "1"
    )
    within: float | None = column("that which 90 % of the points are within", "1")
    right: int = column("points of which fits or will not fit is called right", "1")
    wrong: int = column("points of which it is called wrong", "1")
    uncertain: int = column("points that ran or were out of memory and are called uncertain", "1")


class _Known(NamedTuple):
    """A point with the bytes of its parts and device, its peak, and how its runs ended."""

    point: Point
    memory: PointMemory
    peak: float | None
    outcome: str


def memory_rows(inputs: TableInputs) -> Iterator[MemoryRow | MemoryFitRow]:
    """A row per point whose bytes can be worked out, and one of the constants."""
    memory = planned(inputs.data.experiment).memory
    known = list(_known(inputs.data, inputs.points, memory)) if memory else []
    if memory is None or not known:
        return
    measured = [(each.memory.parts, each.peak) for each in known if each.peak is not None]
    fit, others = fit_memory(measured, memory.rank), iter(fits_without(measured, memory.rank))
    fits = [fit if each.peak is None else next(others) for each in known]
    rows = [_row(each, own, memory) for each, own in zip(known, fits, strict=True)]
    yield from rows
    errors = [abs(row.ratio - 1) for row in rows if row.ratio is not None]
    judged = [row for row in rows if row.outcome in (RAN, OUT_OF_MEMORY) and row.verdict]
    yield MemoryFitRow(
        **asdict(fit),
        error=float(np.median(errors)) if errors else None,
        within=float(np.quantile(errors, 0.9)) if errors else None,
        right=sum(row.called == RIGHT for row in judged),
        wrong=sum(row.called == WRONG for row in judged),
        uncertain=sum(row.verdict == UNCERTAIN for row in judged),
    )


def _known(data: ExperimentData, points: Sequence[Point], memory: Memory) -> Iterator[_Known]:
    """The points of which the model can say something."""
    peaks = peak_bytes(data, memory)
    for point in points:
        known = point_memory(
            planned(data.experiment),
            parameters_at(data.experiment, point.values),
            data.experiment["benchmark"],
        )
        if not isinstance(known, PointMemory):
            continue
        out = not _OUT_OF_MEMORY.isdisjoint(point.failed)
        ended = OUT_OF_MEMORY if out else FAILED if point.failed else ""
        outcome = RAN if point.rows.size else ended
        yield _Known(point, known, peak_of(peaks, point), outcome)


def _row(known: _Known, fit: MemoryFit, memory: Memory) -> MemoryRow:
    parts, device, obstacle = known.memory
    factors = np.array([fit.states] * 3 + [fit.activations, fit.logits])
    stages = parts * factors
    most = stages[int(stages.sum(axis=1).argmax())].tolist()
    expected = fit.needed(parts, memory.rank)
    verdict = "" if device is None else fit.verdict(parts, device)
    called = ""
    if verdict in (FITS, TOO_LARGE) and known.outcome in (RAN, OUT_OF_MEMORY):
        called = RIGHT if (verdict == FITS) == (known.outcome == RAN) else WRONG
    return MemoryRow(
        **point_columns(known.point),
        **dict(zip(PARTS, most, strict=True)),
        overhead=fit.overhead,
        needed=fit.needed(parts),
        expected=expected,
        measured=known.peak,
        ratio=None if known.peak is None else known.peak / expected,
        device=device,
        verdict=verdict,
        outcome=known.outcome,
        obstacle=obstacle,
        called=called,
    )


MAKERS = (Maker((MemoryRow, MemoryFitRow), memory_rows),)


RULE, OUT = "memory", "out of memory"
LEAST = 3  # points with a measured peak


def memory_notes(results: ExperimentResults) -> list[Finding]:
    """How near predicted peaks come, and what the model says of points that failed."""
    rows, fits = results.of(MemoryRow), results.of(MemoryFitRow)
    if not rows or not fits:
        return []
    findings, fit = [], fits[0]
    measured = [row for row in rows if row.ratio is not None]
    if len(measured) >= LEAST:
        key = {"source": measured[0].source}
        evidence = {"experiment": results.name, "table": MemoryFitRow.TABLE, "key": key}
        counts = {"peaks": len(measured), "right": fit.right, "judged": fit.right + fit.wrong}
        shares = {"error": fit.error, "within": fit.within}
        numbers = tuple(number_of(name, n, "1") for name, n in (counts | shares).items())
        findings.append(Finding(results.name, RULE, NOTE, evidence=evidence, numbers=numbers))
    if out := [row for row in rows if row.outcome == OUT_OF_MEMORY]:
        counts = {
            "failed": len(out),
            "points": len(out) + sum(row.outcome == RAN for row in rows),
            "large": sum(row.called == RIGHT for row in out),
            "fitting": sum(row.called == WRONG for row in out),
        }
        # The row of the point that needs the most.
        evidence = declared_evidence(results, max(out, key=lambda row: row.needed))
        numbers = tuple(number_of(name, count, "1") for name, count in counts.items())
        findings.append(Finding(results.name, OUT, NOTE, evidence=evidence, numbers=numbers))
    return findings


RULES = (
    Rule(
        RULE, memory_notes,
        says={NOTE: "Of {peaks} memory peaks, each predicted without itself, the median is off by "
              "{error:%}; {right} of {judged} verdicts are right."},
    ),
    Rule(
        OUT, None,
        says={NOTE: "{failed} of {points} points ran out of memory; the memory model calls {large} "
              "of them too large and {fitting} fitting."},
    ),
)  # fmt: skip


_NOTE = (
    "Predicted: what the rank that needs the most memory takes, by a model fitted to all other "
    "points (docs/methods/memory.md). Measured / expected: the measured peak over what the model "
    "expects of the rank that was measured."
)


def memory_table(results: ExperimentResults, limit: int) -> Table | None:
    """Predicted and measured bytes of every point; None where there are none."""
    columns = [
        ("Weights, optimiser [GiB]", "weights", lambda row: _gib(row.weights + row.optimizer)),
        ("Gradients [GiB]", "gradients", lambda row: _gib(row.gradients)),
        ("Activations [GiB]", "activations", lambda row: _gib(row.activations)),
        ("Logits [GiB]", "logits", lambda row: _gib(row.logits)),
        ("Predicted [GiB]", "needed", lambda row: _gib(row.needed)),
        ("Measured [GiB]", "measured", lambda row: _gib(row.measured)),
        ("Measured / expected", "ratio", lambda row: number(row.ratio)),
        ("Predicted / device", "device",
         lambda row: percent(row.device and row.needed / row.device)),
        ("Verdict", "verdict", lambda row: _NO_START if row.obstacle else row.verdict or "–"),
        ("Outcome", "outcome", lambda row: Cell(row.outcome or "–", row.called == WRONG)),
    ]  # fmt: skip
    return declared_table(results, results.of(MemoryRow), columns, limit)


_NO_START = "will not start"


def _gib(value: float | None) -> str:
    return "–" if value is None else number(value / GIB)


SECTION = Section("Memory", memory_table, lambda _results: [_NOTE])
