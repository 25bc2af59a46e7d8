"""Training without the exchange of gradients, where the launcher asks for it (by its variable).

Every device then trains by itself, with the same model, batches and steps; what a measured step
takes more is what the exchange costs that cannot be hidden. The weights of the ranks drift apart,
so that what such a run learns means nothing.
"""

import os

NOEXCHANGE = "noexchange"
LEFT_OUT = "left out"
# Of a run that trains to a target, which single ranks may never meet: the first one warms up.
EPOCHS = 4


def left_out() -> bool:
    """Return whether this run is to leave out the exchange."""
    return os.environ.get("SCALESWEEP_PROFILE") == NOEXCHANGE


def together(ranks: int) -> int:
    """Return how many ranks train one model: the learning rate follows from that."""
    return 1 if left_out() else ranks


def epochs(planned: int, target: float | None) -> int:
    """Return how many epochs to train at most."""
    return min(planned, EPOCHS) if left_out() and target is not None else planned
