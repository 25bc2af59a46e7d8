"""The section of the page on steps by axis of the mesh."""

from scalesweep.aspects.mesh.table import MeshStep
from scalesweep.core.formatting import number
from scalesweep.experiment.by_kind import table_by_kind
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section

LABELS = {
    "least": "Least time", "recompute": "Recompute", "slower": "Slower kernels",
    "compute": "Passes", "optimizer": "Optimiser", "input": "Input", "host": "Host",
    "imbalance": "Imbalance", "data": "Data-parallel exchange",
    "tensor": "Tensor-parallel exchange",
    "pipeline": "Pipeline wait", "barrier": "Barrier", "rest": "Rest",
}  # fmt: skip
_NOTE = (
    "Terms of a step in ms, which add up to it. Least time: FLOP of the model over the peak of a "
    "rank, if one is known."
)


def mesh_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per point: its terms in ms; None without points."""
    rows = results.of(MeshStep)
    return table_by_kind(
        results, limit, rows, "term", "value", lambda value, *_: number(value), LABELS.__getitem__
    )


SECTION = Section("Mesh", mesh_table, lambda _results: [_NOTE])
