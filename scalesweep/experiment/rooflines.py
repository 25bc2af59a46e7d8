"""The rooflines of an experiment, read from its tables `roofline` and `ceilings`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.roofline import COMPUTE, Roof
from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.tables.ceilings import (
    DATASHEET,
    MEASURED,
    Ceiling,
    ceiling_of,
    numbers_of,
    roof_of,
)
from scalesweep.tables.roofline import STEP, roofline_column

LOCAL_BATCH = "batch_size"


@dataclass(frozen=True)
class Entry:
    """A row of the table without its parameters: a kind of layer, or the step; None: missing."""

    layer: str
    kind: str
    count: int
    bound: str | None
    flop: float
    ms: float
    flops: float
    intensity: float | None
    of_layers: float | None
    least_ms: float | None
    of_roof: float | None
    of_roof_low: float | None
    of_roof_high: float | None
    coverage: float | None


@dataclass(frozen=True)
class PointRoofline:
    """A point's layers and step under the roofs of one of its ranks, by how they are known."""

    row: Row
    repeats: int
    ranks_on_node: int
    layers: Sequence[Entry]
    step: Entry
    roofs: Mapping[str, Roof]  # MEASURED, DATASHEET
    growing: bool  # the measured ceiling of computation still grew at the end of the sizes tried

    @property
    def local_batch(self) -> int | None:
        """Samples of a rank in a step, where the benchmark says so."""
        value = self.row.get(LOCAL_BATCH)
        return int(value) if finite(value) else None


def rooflines(results: ExperimentResults) -> list[list[PointRoofline]]:
    """Points by what they are rooflines of (model, precision, ...), largest local batch first.

    Points of a group differ in scale and work per rank only. Of equal local batches the one at the
    smallest scale comes first.
    """
    ceilings = [Ceiling(**_bare(row)) for row in results.rows("ceilings")]
    names = {name: roofline_column(name, results.axes) for name in Entry.__annotations__}
    points: dict[tuple[object, ...], list[Row]] = {}
    for row in results.rows("roofline"):
        points.setdefault((*results.key(row, results.axes), row["source"]), []).append(row)
    fixed = results.entry["fixed"]
    groups: dict[tuple[object, ...], list[PointRoofline]] = {}
    apart = group_names(results)
    for rows in points.values():
        found_entries: list[dict[str, Any]] = [
            {name: row.get(title) for name, title in names.items()} for row in rows
        ]
        entries = [Entry(**values) for values in found_entries]
        every = {**fixed, **rows[0]}
        ranks = min(int(every["ranks"]), int(every.get("ranks_per_node") or 1))
        by_point = {
            point: roof_of(ceilings, point, numbers_of(every)) for point in (MEASURED, DATASHEET)
        }
        flops = ceiling_of(ceilings, COMPUTE, MEASURED, numbers_of(every))
        point = PointRoofline(
            {LOCAL_BATCH: fixed.get(LOCAL_BATCH), **rows[0]},
            int(rows[0]["repeats"]),
            ranks,
            [entry for entry in entries if entry.kind != STEP],
            next(entry for entry in entries if entry.kind == STEP),
            {point: roof.shared(ranks) for point, roof in by_point.items() if roof},
            flops is not None and flops.growing,
        )
        groups.setdefault((*results.key(rows[0], apart), rows[0]["source"]), []).append(point)
    return [
        sorted(group, key=lambda point: (-(point.local_batch or 0), point.row.get("ranks") or 1))
        for group in groups.values()
    ]


def group_names(results: ExperimentResults) -> list[str]:
    """The varying parameters that tell one roofline from another."""
    apart = {results.scale, LOCAL_BATCH, "ranks_per_node", *results.entry["scale_parameters"]}
    apart |= set(results.entry["work"])
    return [name for name in results.axes if name not in apart]


def _bare(row: Row) -> dict[str, Any]:
    """A row of `ceilings` as a ``Ceiling`` takes it."""
    return {**{name: row[name] for name in Ceiling.__annotations__}, "dtype": row["dtype"] or ""}
