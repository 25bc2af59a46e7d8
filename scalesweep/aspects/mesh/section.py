"""The section of the page on steps by axis of the mesh."""

from collections.abc import Callable
from typing import Any

from scalesweep.aspects.mesh.table import TERMS, MeshStep, PipelineIdle
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import point_key
from scalesweep.table.declared import numbers_of

NOTABLE = 0.001  # of the step
LABELS = {
    "least": "Least time", "recompute": "Recompute", "slower": "Slower kernels",
    "compute": "Passes", "optimizer": "Optimiser", "input": "Input", "host": "Host",
    "imbalance": "Imbalance", "data": "Data-parallel exchange",
    "tensor": "Tensor-parallel exchange",
    "pipeline": "Pipeline wait", "barrier": "Barrier", "rest": "Rest",
}  # fmt: skip
_NOTES = [
    "Terms add up to the step; those below a thousandth of it are in the table mesh_steps only. "
    "Least time: FLOP of the model over the peak of a rank, if one is known.",
    "Idle / computing: how long the stages of a pipeline wait for each other, over their forward "
    "and backward passes; p stages, v of them on a rank, m micro-batches.",
]


def mesh_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per point: its terms in ms, and the idle time of its stages; None without points."""
    points: dict[object, Row] = {}
    for term in results.of(MeshStep):
        row = points.setdefault(point_key(results, term.row), {**term.row, "step": term.step})
        if abs(term.share) >= NOTABLE:
            row[term.term] = term.value.value
    for idle in results.of(PipelineIdle):
        points[point_key(results, idle.row)] |= {
            "idle": numbers_of(idle.idle), "formula": [idle.formula], "unequal": [idle.unequal],
        }  # fmt: skip
    rows = list(points.values())
    if not rows:
        return None
    shown = [name for name in TERMS if any(name in row for row in rows)]
    columns = [_column(LABELS[name], name, number) for name in shown]
    groups = [("Of a step [ms]", [*columns, _column("Step", "step", number)])]
    if any("idle" in row for row in rows):
        groups.append(("Idle / computing", [
            _column("Measured", "idle", _share), _column("(p-1)/(v m)", "formula", _share),
            _column("By unequal stages", "unequal", _share),
        ]))  # fmt: skip
    return table_of(results, rows, groups, limit)


def _column(heading: str, name: str, words: Callable[[Any], str]) -> Column:
    return Column(heading, lambda row: Cell(words(row.get(name))), name)


def _share(numbers: Any) -> str:
    return percent(*numbers) if numbers else "–"


SECTION = Section(
    "Mesh",
    mesh_table,
    lambda results: _NOTES if results.of(PipelineIdle) else _NOTES[:1],
)
