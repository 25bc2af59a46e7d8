"""The tables ``roofline`` and ``ceilings``: what each layer of a model reaches of what the machine
could do.

Ceilings are those of a node, shared equally by the ranks on it. Times are means over the repeats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.roofline import COMPUTE, MEMORY, UNRATED, Roof, rated_flop, share_of
from scalesweep.analysis.stats import mean_of, share_p
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import counted, finite, number, percent, with_interval
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.points_table import Table, declared_table, share_text
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.table.declared import Estimate, PointRow, column, numbers_of
from scalesweep.tables.layers import LAYERS, LayerTimes
from scalesweep.tables.machine import DATASHEET, MEASURED, Ceiling, Machine, numbers_in
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Point

STEP = "step"  # the row of the whole step, in the columns layer and kind
_MS = 1e3


@dataclass(frozen=True, kw_only=True)
class LayerRow(PointRow, table="roofline"):
    """A kind of layer at a point, or its whole step (``layer`` and ``kind`` are ``step``).

    What is said of a kind is of all its layers together. The least time of layers without products
    (``analysis.roofline.PRODUCTS``) is that of their bytes.
    """

    numbers: str = column("type of the numbers: `float32`, `tf32`, ...")
    layer: str = column("name of the first layer of the kind, or `step`")
    kind: str = column("kind of the layer, or `step`")
    count: int = column("how many layers are the same", "1")
    bound: str | None = column(
        "what limits it: `compute`, `memory`, `launch`, or `unrated` (docs/methods/roofline.md)",
        default=None,
    )
    roof: str | None = column("which ceilings: `measured` or `datasheet`", default=None)
    flop: float = column("operations, forward and backward", "FLOP")
    bytes: float = column("bytes moved, forward and backward", "bytes")
    ms: Estimate = column("time, forward and backward", "ms")
    of_layers: float | None = column("share of the sum of the layers", "1", default=None)
    flops: float = column("operations over time", "FLOP/s")
    intensity: float | None = column("operations over bytes", "FLOP/byte")
    least_ms: float | None = column("the least time under the ceilings", "ms", default=None)
    of_roof: Estimate | None = column(
        "`least_ms` / `ms`; of the step with an interval, which holds the uncertainty of the "
        "ceilings too",
        "1", default=None,
    )  # fmt: skip
    coverage: float | None = column("of the step: the sum of the layers over it", "1", default=None)
    roof_flops: float | None = column("of the step: the ceiling of a rank", "FLOP/s", default=None)
    roof_bytes_per_s: float | None = column("and its share of memory", "bytes/s", default=None)
    growing: bool = column(
        "of the step: whether the ceiling of computation still grew at the last size tried",
        default=False,
    )


def layer_rows(inputs: TableInputs) -> Iterator[LayerRow]:
    """A row per point and kind of layer, and one for its whole step."""
    data = inputs.data
    for point in inputs.points:
        runs = _timed(data, point)
        alike = [run for run in runs if run.name == runs[0].name]
        if alike:
            numbers = numbers_in(data, point)
            head = {**point_columns(point), "repeats": len(alike), "numbers": numbers}
            yield from _rows(head, alike, _roof(data, point, inputs.machine))


def ceiling_rows(inputs: TableInputs) -> Iterator[Ceiling]:
    """The ceilings of the machine, where layers are held against them."""
    if any(_timed(inputs.data, point) for point in inputs.points):
        for each in inputs.machine.ceilings:
            memory = inputs.machine.ceiling(MEMORY, each.stated)
            over = memory.value.value if each.kind == COMPUTE and memory else None
            yield replace(each, ridge=over and each.value.value / over)


MAKERS = (Maker(LayerRow, layer_rows), Maker(Ceiling, ceiling_rows))


def _timed(data: ExperimentData, point: Point) -> list[LayerTimes]:
    """What the runs of a point have timed of their layers."""
    notes = data.notes(LAYERS)
    return [LayerTimes(**notes[row]) for row in point.rows.tolist() if row in notes]


class _Over(NamedTuple):
    """The roof over a rank, of which ceilings, the interval of a least time under it (1 is its
    value), and whether the ceiling of computation still grew."""

    roof: Roof
    stated: str
    least: Estimate
    growing: bool


def _roof(data: ExperimentData, point: Point, machine: Machine) -> _Over | None:
    """Measured ceilings where both are there, else those of the data sheet."""
    every = parameters_at(data.experiment, point.values)
    dtype = numbers_in(data, point)
    ranks = min(int(every["ranks"]), int(every.get("ranks_per_node") or 1))
    for stated in (MEASURED, DATASHEET):
        flops, memory = machine.ceiling(COMPUTE, stated, dtype), machine.ceiling(MEMORY, stated)
        if flops and memory:
            # Of both ceilings the wider interval counts at each end: which of them a layer hangs
            # from is not the same.
            both = [each.value.over(each.value.value) for each in (flops, memory)]
            ends = np.array([(each.low, each.high) for each in both], np.float64)
            least = Estimate.of(1.0, ends[:, 0].min(), ends[:, 1].max())
            roof = Roof(flops.value.value / ranks, memory.value.value / ranks)
            return _Over(roof, stated, least, flops.growing)
    return None


def _rows(
    head: dict[str, Any], runs: Sequence[LayerTimes], over: _Over | None
) -> Iterator[LayerRow]:
    """A row per kind of layer of a point, and one of the whole step: ms, FLOP/s, FLOP/byte and the
    least time (s) that the roof allows, as means over repeats."""
    first = runs[0]
    counts = np.array(first.count, np.float64)
    # [repeat, layer] of all layers of a kind, in s.
    both = np.array([run.both for run in runs]) * counts
    launch_s = float(np.mean([run.launch for run in runs]))
    flop = np.add(first.flop_forward, first.flop_backward)
    moved = np.add(first.bytes_forward, first.bytes_backward)
    starts = 1 + ((np.array(first.flop_backward) > 0) | (np.array(first.bytes_backward) > 0))
    least_ms = np.zeros(len(counts))
    for place, (name, kind) in enumerate(zip(first.name, first.kind, strict=True)):
        count, each, its = counts[place], float(flop[place]), float(moved[place])
        timed = _times(count * each, count * its, both[:, place])
        if over is not None:
            least_ms[place] = count * over.roof.least_s(rated_flop(kind, each), its) * _MS
            timed |= {
                "roof": over.stated,
                "bound": over.roof.class_of(kind, each, its, float(starts[place]) * launch_s),
                "least_ms": float(least_ms[place]),
                "of_roof": Estimate(float(least_ms[place]) / timed["ms"].value),
            }
        yield LayerRow(
            **head, **timed, layer=name, kind=kind, count=int(count),
            of_layers=float(both[:, place].mean() / both.mean(axis=0).sum()),
        )  # fmt: skip
    steps = np.array([run.step for run in runs])
    timed = _times(float(counts @ flop), float(counts @ moved), steps)
    if over is not None:
        timed |= {
            "roof": over.stated,
            "least_ms": float(least_ms.sum()),
            "of_roof": share_of(least_ms.sum() / _MS / steps, over.least),
            "roof_flops": over.roof.flops,
            "roof_bytes_per_s": over.roof.bytes_per_s,
            "growing": over.growing,
        }
    coverage = float((both.sum(axis=1) / steps).mean())
    yield LayerRow(**head, **timed, layer=STEP, kind=STEP, count=1, coverage=coverage)


def _times(flop: float, moved: float, seconds: Floats) -> dict[str, Any]:
    return {
        "flop": flop, "bytes": moved, "ms": mean_of(seconds * _MS),
        "flops": flop / float(seconds.mean()), "intensity": flop / moved if moved > 0 else None,
    }  # fmt: skip


LOCAL_BATCH = "batch_size"


@dataclass(frozen=True)
class PointRoofline:
    """A point's layers, those that take longest first, and its step under the roof of a rank."""

    row: Row
    layers: Sequence[LayerRow]
    step: LayerRow
    local_batch: int | None  # samples of a rank in a step, where the benchmark says so

    @property
    def roof(self) -> Roof | None:
        """Its ceilings; None without any."""
        flops, bandwidth = self.step.roof_flops, self.step.roof_bytes_per_s
        return None if flops is None or bandwidth is None else Roof(flops, bandwidth)


def rooflines(results: ExperimentResults) -> list[list[PointRoofline]]:
    """Points by what they are rooflines of (model, precision, ...), largest local batch first.

    Points of a group differ in scale and work per rank only. Of equal local batches the one at the
    smallest scale comes first.
    """
    points: dict[Key, list[LayerRow]] = {}
    for row in results.of(LayerRow):
        points.setdefault((*results.key(row.point, results.axes), row.source), []).append(row)
    groups: dict[Key, list[PointRoofline]] = {}
    names = group_names(results)
    for rows in points.values():
        batch = parameters_at(results.entry, rows[0].point).get(LOCAL_BATCH)
        layers = [row for row in rows if row.kind != STEP]
        point = PointRoofline(
            {LOCAL_BATCH: batch, **rows[0].row},
            sorted(layers, key=lambda row: -row.ms.value),
            next(row for row in rows if row.kind == STEP),
            int(batch) if finite(batch) else None,
        )
        groups.setdefault((*results.key(rows[0].point, names), rows[0].source), []).append(point)
    return [
        sorted(group, key=lambda point: (-(point.local_batch or 0), point.row.get("ranks") or 1))
        for group in groups.values()
    ]


def group_names(results: ExperimentResults) -> list[str]:
    """The varying parameters that tell one roofline from another."""
    same = {results.scale, LOCAL_BATCH, "ranks_per_node", *results.entry["scale_parameters"]}
    return [name for name in results.axes if name not in same | set(results.entry["work"])]


RULE, APART = "roofline", "layers apart"
# Layers' sum over the step: outside of this the layers say little about the step.
LEAST_COVERAGE, MOST_COVERAGE = 0.8, 1.25


def step_against_roof(results: ExperimentResults) -> list[Finding]:
    """For each roofline, at its largest and smallest local batch, what the step reaches; nothing
    without measured ceilings."""
    findings = []
    for group in rooflines(results):
        ends = {point.local_batch: point for point in (group[-1], group[0])}
        findings += [
            _finding(results, point)
            for point in reversed(ends.values())
            if point.step.roof == MEASURED
        ]
    return findings


def _finding(results: ExperimentResults, point: PointRoofline) -> Finding:
    """What a step reaches of what the ceilings allow; a note where the layers do not add up to the
    step, or it is faster than the ceilings."""
    step, of_roof = point.step, point.step.of_roof
    assert of_roof is not None
    low, high, coverage = of_roof.low, of_roof.high, step.coverage or 0.0
    sure = high is not None and high < 1 and not step.growing
    adds_up = LEAST_COVERAGE <= coverage <= MOST_COVERAGE
    gaps = [layer for layer in point.layers if layer.bound != UNRATED and layer.least_ms]
    gap = max(gaps, key=lambda layer: layer.ms.value - (layer.least_ms or 0.0), default=None)
    named = f"; the largest gap is in {gap.layer}, {gap.bound} bound" if gap else ""
    p = share_p(of_roof.value, low, high, step.repeats, 1.0)
    state, rule = (CLEAR if sure else OPEN), RULE
    if not adds_up or (low is not None and low > 1):
        state, rule = NOTE, RULE if adds_up else APART
    evidence = declared_evidence(results, step)
    evidence["key"]["layer"] = step.layer
    return Finding(
        results.name,
        rule,
        state,
        subject=f"At {results.describe(point.row)}" if results.axes else "",
        words={"gap": named if of_roof.value < 1 else ""},
        numbers=(estimate_of("of_roof", of_roof, "1"), number_of("coverage", coverage, "1")),
        claims=(claim_of(p, RULE, *results.point_key(point.row)),),
        reason="the ceiling still grew at the last size" if step.growing else "",
        evidence=evidence,
    )


RULES = (
    Rule(
        RULE, step_against_roof,
        says={
            CLEAR: "{subject} the step reaches {of_roof:%} of what its layers could{gap}.",
            NOTE: "{subject} the step is faster than the measured ceilings allow: {of_roof:%}.",
        },
        next={CLEAR: "look at the layer with the largest gap first"},
    ),
    Rule(
        APART, None,
        says={NOTE: "{subject} the layers, timed apart, come to {coverage:%} of the step."},
    ),
)  # fmt: skip


MOST = 12  # rows of a point besides its step: those that take longest
_NOTE = (
    "The layers of a model, each timed apart, and the whole step: means over repeats of "
    "all layers of a kind together, forward and backward. Bound and least time are by the "
    "ceilings of the machine (docs/methods/roofline.md)."
)


def layer_table(results: ExperimentResults, limit: int) -> Table | None:
    """Every point's step and the layers that take longest; None where no layers were timed."""
    points = [point for group in rooflines(results) for point in group]
    rows = [row for point in points for row in (point.step, *point.layers[:MOST])]
    columns = [
        ("Layer", "layer", _name),
        ("Time [ms]", "ms", lambda row: with_interval(*numbers_of(row.ms))),
        ("Share of layers", "of_layers", lambda row: percent(row.of_layers)),
        ("GFLOP/s", "flops", lambda row: number(row.flops * 1e-9)),
        ("FLOP/byte", "intensity", lambda row: number(row.intensity)),
        ("Bound by", "bound", lambda row: row.bound or "–"),
        ("Least time [ms]", "least_ms", lambda row: number(row.least_ms)),
        ("Of what it could", "of_roof", lambda row: share_text(row.of_roof)),
        ("Coverage", "coverage", lambda row: percent(row.coverage)),
    ]
    return declared_table(results, rows, columns, limit)


def _name(row: LayerRow) -> str:
    return f"{row.layer} ({counted(row.count, 'layer')})" if row.count > 1 else row.layer


SECTION = Section("Layers", layer_table, lambda _results: [_NOTE])
