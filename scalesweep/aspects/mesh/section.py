"""The section of the page on steps by axis of the mesh."""

from collections.abc import Callable

from scalesweep.analysis.mesh_step import TERMS
from scalesweep.aspects.mesh.table import MeshStep, PipelineIdle
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section

_TERMS, _IDLE = "mesh terms", "pipeline row"
NOTABLE = 0.001  # of the step
LABELS = {
    "least": "Least time", "recompute": "Recompute", "slower": "Slower kernels",
    "compute": "Passes", "optimizer": "Optimiser", "input": "Input", "host": "Host",
    "imbalance": "Imbalance", "data": "Data-parallel exchange",
    "tensor": "Tensor-parallel exchange",
    "pipeline": "Pipeline wait", "barrier": "Barrier", "rest": "Rest",
}  # fmt: skip


def mesh_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per point: its terms in ms, and the idle time of its stages; None without points."""
    terms: dict[str, list[MeshStep]] = {}
    for row in results.of(MeshStep):
        terms.setdefault(_key(results, row.row), []).append(row)
    if not terms:
        return None
    idle = {_key(results, row.row): row for row in results.of(PipelineIdle)}
    rows = [
        {**group[0].row, _TERMS: {row.term: row for row in group}, _IDLE: idle.get(key)}
        for key, group in terms.items()
    ]
    shown = [name for name in TERMS if any(_notable(row[_TERMS].get(name)) for row in rows)]
    columns = [Column(LABELS[name], _cell(name), name) for name in shown]
    columns.append(Column("Step", lambda row: Cell(number(_any(row).step)), "step"))
    groups = [("Of a step [ms]", columns)]
    if idle:
        groups.append(("Idle / computing", [
            Column("Measured", _measured, "idle"), Column("(p-1)/(v m)", _formula, "formula"),
            Column("By unequal stages", _unequal, "unequal"),
        ]))  # fmt: skip
    return table_of(results, rows, groups, limit)


def _notable(term: MeshStep | None) -> bool:
    """Whether a term is more than a thousandth of its step; the table mesh_steps has all."""
    return term is not None and abs(term.share) >= NOTABLE


def _key(results: ExperimentResults, row: Row) -> str:
    return repr((*results.key(row, results.axes), row["source"]))


def _any(row: Row) -> MeshStep:
    term: MeshStep = next(iter(row[_TERMS].values()))
    return term


def _cell(name: str) -> Callable[[Row], Cell]:
    def cell(row: Row) -> Cell:
        term = row[_TERMS].get(name)
        return Cell("–" if term is None else number(term.value.value))

    return cell


def _measured(row: Row) -> Cell:
    idle = row[_IDLE]
    return Cell("–" if idle is None else percent(idle.idle.value, idle.idle.low, idle.idle.high))


def _formula(row: Row) -> Cell:
    idle = row[_IDLE]
    return Cell("–" if idle is None else percent(idle.formula))


def _unequal(row: Row) -> Cell:
    idle = row[_IDLE]
    return Cell("–" if idle is None else percent(idle.unequal))


def _notes(results: ExperimentResults) -> list[str]:
    """What the terms are of, and what was left out."""
    peaks = {row.peak_from for row in results.of(MeshStep) if row.peak_from}
    least = (
        f"Least time: FLOP of the model over the peak of a rank ({', '.join(sorted(peaks))})."
        if peaks
        else "Without a measured ceiling or a peak in the site file computation has no least time."
    )
    notes = [
        "Terms add up to the step; those below a thousandth of it at all points are in the table "
        f"mesh_steps only. {least}"
    ]
    if results.of(PipelineIdle):
        notes.append(
            "Idle / computing: how long the stages of a pipeline wait for each other, over their "
            "forward and backward passes; p stages, v of them on a rank, m micro-batches."
        )
    return notes


SECTION = Section("Mesh", mesh_table, _notes)
