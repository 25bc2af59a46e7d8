"""Where the time of a step goes by axis of the mesh, and how long the stages of pipelines idle."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "mesh_steps": "The time of a step by what it is for: least time of the model's FLOP, "
        "recomputation, slower kernels, exchange by axis of the mesh, pipeline wait, the rest.",
        "pipeline_idle": "How long the stages of a pipeline idle, beside (p - 1) / (v m).",
    },
)
