"""Where the time of a step goes, against the smallest scale and against the machine."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings"),
    tables={
        "efficiency": "The time of a step by loss, and the factors of the efficiency, at each "
        "point.",
        "first_epoch": "The time of the first epoch by loss, at each point.",
    },
)
