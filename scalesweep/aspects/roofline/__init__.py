"""What the layers of a model reach of what the machine could do."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "roofline": "Operations, bytes and times of kernels or layers beside the machine's limits.",
        "ceilings": "Measured limits of the machine: compute rate, memory bandwidth, collectives, "
        "files.",
    },
)
