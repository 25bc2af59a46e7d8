"""Efficiency factors of the POP methodology, from useful times and run times.

u_r is the useful (non-communication) time of rank r, T the run time, u' and T' the same of a replay
on an ideal network. Formulas: pop-coe.eu, "POP Standard Metrics for Parallel Performance Analysis";
how communication splits as BSC's modelfactors.py has it (pypop takes max u / T' and T' / T).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

SPLIT = "modelfactors: serialisation = max u' / T', transfer = communication / serialisation"


def pop_factors(
    mean_useful: float, max_useful: float, runtime: float,
    replay: tuple[float, float] | None = None,
) -> dict[str, float]:  # fmt: skip
    """The factors of a run by the name of their metric, from seconds; ``replay``: T' and max u'.

    Parallel efficiency = load balance (mean u / max u) x communication efficiency (max u / T), and
    with a replay that = serialisation x transfer. Raises ValueError if a time is not positive and
    finite, or the mean is above the largest.
    """
    times = [mean_useful, max_useful, runtime, *(replay or ())]
    if not all(math.isfinite(time) and time > 0 for time in times):
        raise ValueError("times must be positive and finite")
    if mean_useful > max_useful * (1 + 1e-6):
        raise ValueError(f"mean useful time {mean_useful:g} s above the largest, {max_useful:g} s")
    balance, communication = mean_useful / max_useful, max_useful / runtime
    factors = {
        "parallel_efficiency": balance * communication, "load_balance": balance,
        "communication_efficiency": communication,
    }  # fmt: skip
    if replay:
        factors["serialisation_efficiency"] = replay[1] / replay[0]
        factors["transfer_efficiency"] = communication * replay[0] / replay[1]
    return factors


def rank_factors(useful: ArrayLike, runtime: float) -> dict[str, float]:
    """The factors from the useful time of every rank, ``[rank]`` in seconds."""
    times = np.asarray(useful, np.float64)
    return pop_factors(float(times.mean()), float(times.max()), runtime)
