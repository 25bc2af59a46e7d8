"""Efficiency factors of the POP methodology, from useful times and run times.

u_r is the useful (non-communication) time of rank r, T the run time, u' and T' the same of a replay
on an ideal network. Formulas: pop-coe.eu, "POP Standard Metrics for Parallel Performance Analysis";
how communication splits as BSC's modelfactors.py has it (pypop takes max u / T' and T' / T).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

SPLIT = "modelfactors: serialisation = max u' / T', transfer = communication / serialisation"


@dataclass(frozen=True, slots=True)
class PopFactors:
    """The factors of one run; parallel = load_balance * communication.

    ``serialisation`` and ``transfer`` (their product is communication) are None without a replay.
    """

    load_balance: float
    communication: float
    parallel: float
    serialisation: float | None = None
    transfer: float | None = None


def pop_factors(
    mean_useful: float, max_useful: float, runtime: float,
    replay: tuple[float, float] | None = None,
) -> PopFactors:  # fmt: skip
    """The factors of a run, from seconds; ``replay``: T' and max u'.

    Load balance = mean u / max u; communication efficiency = max u / T. Raises ValueError if a time
    is not positive and finite, or the mean is above the largest.
    """
    times = [mean_useful, max_useful, runtime, *(replay or ())]
    if not all(math.isfinite(time) and time > 0 for time in times):
        raise ValueError("times must be positive and finite")
    if mean_useful > max_useful * (1 + 1e-6):
        raise ValueError(f"mean useful time {mean_useful:g} s above the largest, {max_useful:g} s")
    balance, communication = mean_useful / max_useful, max_useful / runtime
    split = (replay[1] / replay[0], communication * replay[0] / replay[1]) if replay else ()
    return PopFactors(balance, communication, balance * communication, *split)


def rank_factors(useful: ArrayLike, runtime: float) -> PopFactors:
    """The factors from the useful time of every rank, ``[rank]`` in seconds."""
    times = np.asarray(useful, np.float64)
    return pop_factors(float(times.mean()), float(times.max()), runtime)
