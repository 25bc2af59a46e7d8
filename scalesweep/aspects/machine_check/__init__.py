"""What the machine did before and after each run (the canary), and whether it differed."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings"),
    tables={"canary": "Quick checks of each node before runs, with the nodes that are off."},
)
