"""The values of parameters against each other: the best, and by how much."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings"),
    tables={
        "comparisons": "Ratios of two points, or of many pairs of points: of settings, threads, "
        "inputs, phases, scales and results of training, with p values."
    },
)
