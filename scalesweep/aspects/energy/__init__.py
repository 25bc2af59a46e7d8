"""Power over time, and how energy was measured."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "section"),
)
