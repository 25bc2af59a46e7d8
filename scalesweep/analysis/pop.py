"""Efficiency factors of the POP methodology, from useful times and run times.

u_r is the useful (non-communication) time of rank r, T the run time, u' and T' the same of a replay
on an ideal network. Formulas: pop-coe.eu, "POP Standard Metrics for Parallel Performance Analysis".
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Two variants of how communication efficiency splits, which disagree; never one number without it.
MODELFACTORS = "modelfactors"  # BSC's modelfactors.py
PYPOP = "pypop"  # numericalalgorithmsgroup/pypop, pypop/metrics/mpi.py
VARIANTS = {
    MODELFACTORS: "serialisation = max u' / T', transfer = communication / serialisation",
    PYPOP: "serialisation = max u / T', transfer = T' / T",
}


@dataclass(frozen=True, slots=True)
class Replay:
    """A run on an ideal network: its run time and the largest useful time, in seconds."""

    runtime: float
    max_useful: float


@dataclass(frozen=True, slots=True)
class PopFactors:
    """The factors of one run; parallel = load_balance * communication.

    ``serialisation`` and ``transfer`` (their product is communication) are None without a replay;
    ``variant`` says which of ``VARIANTS`` they are.
    """

    load_balance: float
    communication: float
    parallel: float
    serialisation: float | None = None
    transfer: float | None = None
    variant: str | None = None


def pop_factors(
    mean_useful: float,
    max_useful: float,
    runtime: float,
    replay: Replay | None = None,
    variant: str = MODELFACTORS,
) -> PopFactors:
    """The factors of a run, from seconds.

    Load balance = mean u / max u; communication efficiency = max u / T. Raises ValueError if a time
    is not positive and finite, or the mean is above the largest.
    """
    times = [mean_useful, max_useful, runtime]
    times += [replay.runtime, replay.max_useful] if replay else []
    if not all(math.isfinite(time) and time > 0 for time in times):
        raise ValueError("times must be positive and finite")
    if mean_useful > max_useful * (1 + 1e-6):
        raise ValueError(f"mean useful time {mean_useful:g} s above the largest, {max_useful:g} s")
    balance, communication = mean_useful / max_useful, max_useful / runtime
    if replay is None:
        return PopFactors(balance, communication, balance * communication)
    if variant == MODELFACTORS:
        serialisation = replay.max_useful / replay.runtime
        transfer = communication / serialisation
    else:
        serialisation = max_useful / replay.runtime
        transfer = replay.runtime / runtime
    return PopFactors(
        balance, communication, balance * communication, serialisation, transfer, variant
    )


def rank_factors(useful: ArrayLike, runtime: float) -> PopFactors:
    """The factors from the useful time of every rank, ``[rank]`` in seconds."""
    times = np.asarray(useful, np.float64)
    return pop_factors(float(times.mean()), float(times.max()), runtime)


def computation_scaling(total_useful: float, base_useful: float, weak_factor: float = 1.0) -> float:
    """Useful time of all ranks at the base over that at this scale.

    ``weak_factor``: ranks over those of the base where the work grows with them, else 1.
    """
    return base_useful / total_useful * weak_factor
