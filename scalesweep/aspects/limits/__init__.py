"""The rate that each resource of the machine would allow to training, and the least of them."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings", "section"),
    tables={
        "limits": "Samples a second that files, decoding, copies, computation and network would "
        "each allow to training, beside what was measured."
    },
)
