"""What one parameter changes where all others are held: ratios over matched pairs of points."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings"),
    tables={
        "effects": "What each value of a parameter changes against a base value, over all pairs of "
        "points that are otherwise equal."
    },
)
