"""Whether the machine itself moved at a step, by the canaries of the runs on both sides."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from scalesweep.analysis.stats import t_quantile
from scalesweep.core.formatting import number

SHARE = 0.5  # of the step: less of it leaves the rest to the program
_PREFIXES = {
    "compute": (1e9, "GFLOP/s"),
    **dict.fromkeys(("memory", "allreduce", "read"), (1e9, "GB/s")),
}

# Kind of canary -> session -> rate.
Rates = Mapping[str, Mapping[str, float]]


def machine_moved(
    rates: Rates, base: Sequence[str], new: Sequence[str], speed: float
) -> dict[str, tuple[str, str]]:
    """Rates of the canary that changed with a point, in words: those of base and new sessions.

    ``speed``: natural logarithm of how much faster the point became, negative where it became
    slower. A canary counts if it moved in that direction by half as much or more, and by more than
    the 95 % interval that follows from its scatter among the sessions of the base (Student's t).
    """
    moved = {}
    for kind, of in rates.items():
        old, now = ([math.log(of[name]) for name in side if name in of] for side in (base, new))
        if len(old) < 2 or not now:
            continue
        change = float(np.mean(now) - np.mean(old))
        error = float(np.std(old, ddof=1)) * math.sqrt(1 / len(old) + 1 / len(now))
        if change * speed > 0 and abs(change) >= max(
            SHARE * abs(speed), t_quantile(len(old) - 1) * error
        ):
            factor, unit = _PREFIXES.get(kind, (1.0, ""))
            words = [f"{number(math.exp(np.mean(s)) / factor)} {unit}" for s in (old, now)]
            moved[f"the machine's own speed (canary, {kind})"] = (words[0], words[1])
    return moved
