"""What the memory model predicts of each point, beside measured peaks and runs out of memory."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings", "section"),
    tables={
        "memory": "Predicted bytes of a rank by part, the measured peak, and whether the model "
        "calls right which points fit.",
        "memory_fit": "Constants of the memory model, and how near it comes.",
    },
)
