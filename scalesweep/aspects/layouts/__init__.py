"""Which way to split the ranks: at each scale the best layout, and what failed."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "best_layouts": "At each scale the best layout, how far it is ahead of the next, and how "
        "many points failed.",
        "layouts": "Every layout that ran: its share of the best at its scale, and its memory.",
    },
)
