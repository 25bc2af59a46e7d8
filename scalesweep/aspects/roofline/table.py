"""The tables ``roofline`` and ``ceilings``: what each layer of a model reaches of what the machine
could do.

Ceilings are those of a node, shared equally by the ranks on it. Times are means over the repeats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.roofline import COMPUTE, MEMORY, Roof, rated_flop, share_of
from scalesweep.analysis.stats import mean_of
from scalesweep.analysis.types import Floats
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.table.declared import DeclaredRow, Estimate, PointRow, column
from scalesweep.tables.layers import LAYERS, LayerTimes
from scalesweep.tables.machine import DATASHEET, MEASURED, Machine, numbers_in
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Point

STEP = "step"  # the row of the whole step, in the columns layer and kind
_MS = 1e3
# Of ``tables.machine.Ceiling``, as the table has them.
_AS_STATED = (
    "kind", "stated", "dtype", "repeats", "where", "disturbed", "growing", "intensity",
)  # fmt: skip


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


@dataclass(frozen=True, kw_only=True)
class CeilingRow(DeclaredRow, table="ceilings"):
    """A ceiling of a node (``tables.machine.Ceiling``)."""

    kind: str = column("`compute` or `memory` of a node, or `copies` from host to GPU, of a rank")
    stated: str = column("`measured`, or `datasheet`")
    dtype: str | None = column("type of the numbers, of computation")
    value: Estimate = column("the ceiling; of a measured one the best run", ends=("low", "high"))
    unit: str = column("unit of the ceiling and its interval")
    repeats: int = column("runs at the best point", "1")
    where: str = column("what measured it")
    disturbed: int = column("runs that were disturbed", "1")
    growing: bool = column("whether the rate still grew at the last size tried")
    intensity: float | None = column(
        "operations over the least bytes of the size that reached it, of computation", "FLOP/byte",
        default=None,
    )  # fmt: skip
    ridge: float | None = column(
        "least arithmetic intensity that can reach it: of computation, over the memory's ceiling "
        "that is stated alike",
        "FLOP/byte", default=None,
    )  # fmt: skip


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


def ceiling_rows(inputs: TableInputs) -> Iterator[CeilingRow]:
    """The ceilings of the machine, where layers are held against them."""
    if not any(_timed(inputs.data, point) for point in inputs.points):
        return
    for each in inputs.machine.ceilings:
        memory = inputs.machine.ceiling(MEMORY, each.stated)
        compute = each.kind == COMPUTE
        yield CeilingRow(
            **{name: getattr(each, name) for name in _AS_STATED},
            value=each.rate,
            unit="FLOP/s" if compute else "bytes/s",
            ridge=each.rate.value / memory.rate.value if compute and memory else None,
        )


MAKERS = (Maker(LayerRow, layer_rows), Maker(CeilingRow, ceiling_rows))


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
            both = [each.rate.over(each.rate.value) for each in (flops, memory)]
            lows, highs = ([getattr(each, end) for each in both] for end in ("low", "high"))
            ends = (None, None) if None in (*lows, *highs) else (min(lows), max(highs))
            roof = Roof(flops.rate.value, memory.rate.value).shared(ranks)
            return _Over(roof, stated, Estimate(1.0, *ends), flops.growing)
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
    whole = both.mean(axis=0).sum()
    least = total_flop = total_bytes = 0.0
    for place, (name, kind, count) in enumerate(
        zip(first.name, first.kind, first.count, strict=True)
    ):
        flop = first.flop_forward[place] + first.flop_backward[place]
        moved = first.bytes_forward[place] + first.bytes_backward[place]
        timed = _times(count * flop, count * moved, both[:, place])
        limits: dict[str, Any] = {}
        if over is not None:
            starts = 2 if first.flop_backward[place] or first.bytes_backward[place] else 1
            least_ms = count * over.roof.least_s(rated_flop(kind, flop), moved) * _MS
            limits = {
                "roof": over.stated,
                "bound": over.roof.class_of(kind, flop, moved, starts * launch_s),
                "least_ms": least_ms,
                "of_roof": Estimate(least_ms / timed["ms"].value),
            }
            least += least_ms
        total_flop += count * flop
        total_bytes += count * moved
        yield LayerRow(
            **head,
            **timed,
            **limits,
            layer=name,
            kind=kind,
            count=count,
            of_layers=float(both[:, place].mean() / whole),
        )
    steps = np.array([run.step for run in runs])
    limits = {}
    if over is not None:
        limits = {
            "roof": over.stated,
            "least_ms": least,
            "of_roof": share_of(least / _MS / steps, over.least),
            "roof_flops": over.roof.flops,
            "roof_bytes_per_s": over.roof.bytes_per_s,
            "growing": over.growing,
        }
    yield LayerRow(
        **head,
        **_times(total_flop, total_bytes, steps),
        **limits,
        layer=STEP,
        kind=STEP,
        count=1,
        coverage=float((both.sum(axis=1) / steps).mean()),
    )


def _times(flop: float, moved: float, seconds: Floats) -> dict[str, Any]:
    return {
        "flop": flop, "bytes": moved, "ms": mean_of(seconds * _MS),
        "flops": flop / float(seconds.mean()), "intensity": flop / moved if moved > 0 else None,
    }  # fmt: skip
