"""The rooflines of an experiment, read from its table ``roofline``."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.analysis.roofline import Roof
from scalesweep.aspects.roofline.table import STEP, LayerRow
from scalesweep.core.formatting import finite
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.results import ExperimentResults, Key, Row

LOCAL_BATCH = "batch_size"


@dataclass(frozen=True)
class PointRoofline:
    """A point's layers, those that take longest first, and its step under the roof of a rank."""

    row: Row
    layers: Sequence[LayerRow]
    step: LayerRow

    @property
    def roof(self) -> Roof | None:
        """Its ceilings; None without any."""
        flops, bandwidth = self.step.roof_flops, self.step.roof_bytes_per_s
        return None if flops is None or bandwidth is None else Roof(flops, bandwidth)

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
    points: dict[Key, list[LayerRow]] = {}
    for row in results.of(LayerRow):
        points.setdefault((*results.key(row.point, results.axes), row.source), []).append(row)
    groups: dict[Key, list[PointRoofline]] = {}
    names = group_names(results)
    for rows in points.values():
        every = parameters_at(results.entry, rows[0].point)
        layers = [row for row in rows if row.kind != STEP]
        point = PointRoofline(
            {LOCAL_BATCH: every.get(LOCAL_BATCH), **rows[0].row},
            sorted(layers, key=lambda row: -row.ms.value),
            next(row for row in rows if row.kind == STEP),
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
