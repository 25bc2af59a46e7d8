"""The rate at which files are read, against what the machine gives to plain reads."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings"),
    tables={
        "reading": "The rate at which files were read, and its share of what plain reads reach."
    },
)
