"""What is typical of many series: median speedup, efficiency and ratio of two values."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings"),
    tables={
        "medians": "Medians over series: speedup and efficiency at each count, and the ratio of "
        "each value of a parameter to its reference."
    },
)
