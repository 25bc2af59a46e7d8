"""Where a series of times becomes steady, against the warm-up that was declared."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scalesweep.analysis.stats import MAD_TO_STD, finite_values
from scalesweep.analysis.types import Floats

FEWEST_DRIFTING = 10
# Steady is what lies within so much of the usual value, or so many robust standard deviations.
TOLERANCE, WIDTH = 0.05, 5.0


class SteadyState(NamedTuple):
    """Where a series becomes steady, against the warm-up that was declared.

    ``detected`` is the index of the first steady value, or None if the series is too short to
    tell. ``message`` says in words if warm-up seems to reach beyond the declared count, or if the
    values still drift at the end; else it is empty.
    """

    detected: int | None
    drifting: bool
    message: str


def _drifts(series: Floats, fewest: int) -> bool:
    """Whether a series still rises or falls: Mann and Kendall's trend test at 1 %, and the
    medians of its first and last third differ by more than the tolerance. False for fewer values
    than ``fewest``.
    """
    if series.size < fewest:
        return False
    third = series.size // 3
    change = abs(float(np.median(series[-third:]) - np.median(series[:third])))
    if change <= TOLERANCE * abs(float(np.median(series))):
        return False
    # Blocks keep the pairwise comparison small and average the noise of single steps.
    blocks = np.array([block.mean() for block in np.array_split(series, min(series.size, 100))])
    n = blocks.size
    score = float(np.sign(blocks[None, :] - blocks[:, None])[np.triu_indices(n, 1)].sum())
    deviation = np.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return bool(abs(score) / deviation > 2.576)


def steady_state(
    series: ArrayLike, declared: int, fewest_drifting: int = FEWEST_DRIFTING
) -> SteadyState:
    """Compare a declared warm-up count with where ``series`` becomes steady.

    ``series`` holds times per step or epoch, [step] or [step, rank] (then the median over the
    ranks counts), the warm-up included; ``declared`` leading values are dropped by declaration.
    Steady is what lies within ``WIDTH`` robust standard deviations, or ``TOLERANCE`` of the
    value if that is more, around the median of the second half, together with the median of the
    five values that follow. Dropping more than needed is no disagreement. Fewer values than
    ``fewest_drifting`` are not said to drift.
    """
    array = finite_values(series)
    if array.ndim == 2:
        array = np.median(array, axis=1)
    n = array.size
    if n < 4:
        return SteadyState(None, False, "")
    tail = array[n - max(3, n // 2) :]
    centre = float(np.median(tail))
    spread = WIDTH * MAD_TO_STD * float(np.median(np.abs(tail - centre)))
    band = max(spread, TOLERANCE * abs(centre))
    values = array.tolist()
    detected = n
    for index, here in enumerate(values):
        if abs(here - centre) > band:
            continue
        ahead = sorted(values[index : index + 5])
        middle = (ahead[len(ahead) // 2] + ahead[(len(ahead) - 1) // 2]) / 2
        if abs(middle - centre) <= band:
            detected = index
            break
    drifting = detected == n or _drifts(array[detected:], fewest_drifting)
    message = ""
    if detected > declared:
        message = f"warm-up declared: {declared}, but values are steady only from {detected} on"
    if drifting:
        message = f"values still drift after the declared warm-up of {declared}"
    return SteadyState(detected, drifting, message)
