"""What counts that were not measured would give."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings", "section"),
    tables={
        "prediction": "Predictions at rank counts that were not measured, with 90 % and 95 % "
        "intervals.",
    },
)
