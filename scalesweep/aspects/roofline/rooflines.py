"""The rooflines of an experiment, read from its tables ``roofline`` and ``ceilings``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.analysis.roofline import COMPUTE, Roof
from scalesweep.aspects.roofline.table import STEP, CeilingRow, LayerRow
from scalesweep.core.formatting import finite
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.tables.ceilings import DATASHEET, MEASURED, ceiling_of, roof_of

LOCAL_BATCH = "batch_size"


@dataclass(frozen=True)
class PointRoofline:
    """A point's layers and step under the roofs of one of its ranks, by how they are known."""

    row: Row
    repeats: int
    ranks_on_node: int
    layers: Sequence[LayerRow]
    step: LayerRow
    roofs: Mapping[str, Roof]  # MEASURED, DATASHEET
    growing: bool  # the measured ceiling of computation still grew at the end of the sizes tried

    @property
    def local_batch(self) -> int | None:
        """Samples of a rank in a step, where the benchmark says so."""
        value = self.row.get(LOCAL_BATCH)
        return int(value) if finite(value) else None


def layers_of_points(results: ExperimentResults) -> list[list[LayerRow]]:
    """The rows of the table, of each point and source together."""
    points: dict[Key, list[LayerRow]] = {}
    for row in results.of(LayerRow):
        points.setdefault((*results.key(row.point, results.axes), row.source), []).append(row)
    return list(points.values())


def rooflines(results: ExperimentResults) -> list[list[PointRoofline]]:
    """Points by what they are rooflines of (model, precision, ...), largest local batch first.

    Points of a group differ in scale and work per rank only. Of equal local batches the one at the
    smallest scale comes first.
    """
    ceilings = [row.ceiling for row in results.of(CeilingRow)]
    groups: dict[Key, list[PointRoofline]] = {}
    apart = group_names(results)
    for rows in layers_of_points(results):
        first = rows[0]
        every = parameters_at(results.entry, first.point)
        ranks = min(int(every["ranks"]), int(every.get("ranks_per_node") or 1))
        roofs = {
            stated: roof_of(ceilings, stated, first.numbers) for stated in (MEASURED, DATASHEET)
        }
        flops = ceiling_of(ceilings, COMPUTE, MEASURED, first.numbers)
        point = PointRoofline(
            {LOCAL_BATCH: every.get(LOCAL_BATCH), **first.row},
            first.repeats,
            ranks,
            [row for row in rows if row.kind != STEP],
            next(row for row in rows if row.kind == STEP),
            {stated: roof.shared(ranks) for stated, roof in roofs.items() if roof},
            flops is not None and flops.growing,
        )
        groups.setdefault((*results.key(first.point, apart), first.source), []).append(point)
    return [
        sorted(group, key=lambda point: (-(point.local_batch or 0), point.row.get("ranks") or 1))
        for group in groups.values()
    ]


def group_names(results: ExperimentResults) -> list[str]:
    """The varying parameters that tell one roofline from another."""
    apart = {results.scale, LOCAL_BATCH, "ranks_per_node", *results.entry["scale_parameters"]}
    apart |= set(results.entry["work"])
    return [name for name in results.axes if name not in apart]
