"""The time of a step by what it is for, of ranks on a mesh; and the idle time of pipelines.

The account of a run (``step_account``) has computation, waiting by axis and imbalance. Here
computation is taken apart by what the model needs at least:

    step = least            FLOP of the model / peak
         + recompute        FLOP that the backward pass computes again / peak
         + slower           what forward and backward pass take beyond both
         + optimizer, input, host, imbalance
         + data, tensor, pipeline    exposed exchange and waiting by axis of the mesh
         + barrier, rest

of the rank whose computation is the lower median. The ideal of a pipeline of p stages (v of them on
each rank) and m micro-batches idles (p - 1) / (v m) of what a rank computes (D. Narayanan et al.,
SC 2021, section 2.2): with stages that take equally long, and messages that take no time.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.step_account import StepAccount
from scalesweep.analysis.types import Floats

LEAST, RECOMPUTE, SLOWER, COMPUTE = "least", "recompute", "slower", "compute"
REST = "rest"
# Terms of an account that make up one of a mesh's step.
_OF_ACCOUNT: Mapping[str, Sequence[str]] = {
    "optimizer": ("optimizer",),
    "input": ("input",),
    "host": ("checkpoint", "validation", "logging", "between"),
    "imbalance": ("persistent", "alternating", "stalls"),
    "data": ("transfer", "sharded"),
    "tensor": ("tensor",),
    "pipeline": ("pipeline",),
    "barrier": ("barrier",),
}
# In the order of the formula; ``compute`` where no peak is known.
TERMS = (LEAST, RECOMPUTE, SLOWER, COMPUTE, *_OF_ACCOUNT, REST)
_NEGLIGIBLE = 1e-12  # s


def median_rank(computing: NDArray[np.float64]) -> int:
    """The rank whose mean computation is the lower median; ``computing``: s ``[step, rank]``."""
    means = computing.mean(axis=0)
    return int(np.argsort(means, kind="stable")[(means.size - 1) // 2])


def mesh_step(
    account: StepAccount, flop: float | None, again: float | None, peak: float | None
) -> dict[str, float] | None:
    """Seconds of a step by term, which add up to ``account.elapsed``; None of an account without
    forward and backward pass.

    ``flop`` of the model and ``again``, of what is recomputed, of the median rank in a step (None:
    not known); ``peak``: FLOP/s of that rank. Without FLOP or peak ``compute`` stands for the first
    three terms, without ``again`` ``slower`` for it too.
    """
    if account.forward is None or account.backward is None:
        return None
    working = account.forward + account.backward
    terms: dict[str, float] = {}
    if flop and peak:
        terms[LEAST] = flop / peak
        if again is not None:
            terms[RECOMPUTE] = again / peak
        terms[SLOWER] = working - math.fsum(terms.values())
    else:
        terms[COMPUTE] = working
    for name, parts in _OF_ACCOUNT.items():
        known = [value for part in parts if (value := getattr(account, part)) is not None]
        if known:
            terms[name] = math.fsum(known)
    rest = account.elapsed - math.fsum(terms.values())
    terms[REST] = rest if abs(rest) > _NEGLIGIBLE else 0.0
    return terms


def ideal_idle(stages: int, virtual_stages: int, micro_batches: int) -> float:
    """(p - 1) / (v m): idle over computing time of a pipeline."""
    return (stages - 1) / (virtual_stages * micro_batches)


def pipeline_idle(waits: Floats, computing: Floats) -> tuple[float, float]:
    """Idle over computing time of the ranks of a pipeline, and that which unequal stages cause.

    ``waits`` and ``computing`` (forward and backward pass): s ``[step, rank]``. The second is what
    the mean rank lacks of the busiest: max / mean of their computing times, less 1.
    """
    idle, busy = waits.mean(axis=0), computing.mean(axis=0)
    whole = float(busy.mean())
    return float(idle.mean()) / whole, float(busy.max()) / whole - 1
