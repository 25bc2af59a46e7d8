"""Which way to split the ranks: at each scale the best layout, what others lose, what failed."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "best_layouts": "At each scale the best layout, how far it is ahead of the next, what the "
        "best layout of the next smaller scale loses, and how many points failed.",
        "layouts": "Every layout that ran: its share of the best at its scale, and its memory.",
    },
)
