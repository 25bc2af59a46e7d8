"""Times of every rank at the largest scale, and the ranks and hosts that are slower than others."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings"),
    tables={"stragglers": "Ranks and hosts that are slower than the others, or the slowest rank."},
)
