"""The rate at which files are read, against plain reads, and against what training consumes."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings"),
    tables={
        "reading": "The rate at which files were read, and its share of what plain reads reach.",
        "demand": "The rate at which samples are read, against what training consumes.",
    },
)
