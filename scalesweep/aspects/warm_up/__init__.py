"""How long runs take to become steady: the time of every step, warm-up included."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "section"),
    tables={
        "warm_up": "Steps that each point leaves out as its warm-up, and from which "
        "its times are steady.",
    },
)
