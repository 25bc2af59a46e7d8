"""The figure of a mesh: what a step is made of."""

from scalesweep.aspects.mesh.section import LABELS
from scalesweep.aspects.mesh.table import MeshStep
from scalesweep.experiment.by_kind import by_kind
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing
from scalesweep.figures.stacked import Bar, point_bars

NOTABLE = 0.001  # of the step
# Computation blue, waiting and exchange by axis of the mesh in colours of their own.
_LOOKS = {
    "least": ("#0072B2", ""), "recompute": ("#56B4E9", "////"), "slower": ("#56B4E9", ""),
    "compute": ("#0072B2", ""), "optimizer": ("#7A5195", ""), "input": ("#009E73", ""),
    "host": ("#7A5195", "////"), "imbalance": ("#D55E00", ""), "data": ("#CC79A7", ""),
    "tensor": ("#CC79A7", "xxxx"), "pipeline": ("#E69F00", ""), "barrier": ("#F0E442", ""),
    "rest": ("#9aa1ab", ""),
}  # fmt: skip


def mesh_figures(results: ExperimentResults) -> list[Drawing]:
    """A bar for each point, of the terms of its step."""
    rows = [row for row in results.of(MeshStep) if abs(row.share) >= NOTABLE]
    bars = [Bar(row, parts) for row, parts in by_kind(results, rows, "term", "value")]
    return point_bars(
        results, "mesh-steps", "what a step is made of", "Time of a step", "ms", bars,
        _LOOKS, LABELS, "Mean over runs of the rank whose computation is the lower median.",
    )  # fmt: skip


FIGURES = (mesh_figures,)
