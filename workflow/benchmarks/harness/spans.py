"""Where the time of a rank's step goes: the columns of what programs stamp, and their sums.

Of each step: waiting for input; local computation (forward, backward, update); exposed
communication, from the last local gradient to the last reduced one; and the time since this rank's
step before ended. What is left of the step (dispatch, bookkeeping) is nobody's. Seconds everywhere.
How stamps are taken is each framework's: `tf_spans` for TensorFlow's graphs.
"""

from typing import Any

import numpy as np

from harness import no_exchange

NONE = "none"  # the method of a program that takes no stamps
COLUMNS = ("span_input", "span_compute", "span_communication", "span_between")
CLOCK_S = 1e-3  # by which clocks err


def about(method: str, steps: int, out_of_order: int = 0) -> dict[str, Any]:
    """Return what a record notes of spans: the method, and how many steps an epoch has; of a run
    without it, that the exchange was left out; and steps whose stamps are out of order, if any."""
    notes: dict[str, Any] = {"method": method, "steps_per_epoch": steps}
    notes |= {"exchange": no_exchange.LEFT_OUT} if no_exchange.left_out() else {}
    return notes | ({"out_of_order": out_of_order} if out_of_order else {})


def of_epoch(steps: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sums over an epoch's ``[step, 4, rank]``.

    ``span_*`` ``[rank]``; ``span_busiest``, the sum over steps of the most that a rank spends on
    input and computation; ``span_transfer``, the sum over steps of the least that a rank spends on
    communication: the last to come waits for nobody, so what it takes is the exchange itself.
    """
    times = dict(zip(COLUMNS, steps.sum(axis=0), strict=True))
    busiest = steps[:, :2].sum(axis=1).max(axis=1).sum()
    transfer = steps[:, 2].min(axis=1).sum()
    return times | {"span_busiest": busiest, "span_transfer": transfer}
