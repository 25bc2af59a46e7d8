"""The values of parameters against each other: the best, by how much, and on other sites."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings"),
    tables={
        "comparisons": "Ratios of two points, or of many pairs of points: of settings, threads, "
        "inputs, sites, phases, scales and results of training, with p values."
    },
)
