"""Where a series of times becomes steady, against the warm-up that was declared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scalesweep.analysis.stats import MAD_TO_STD, finite_values
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError

FEWEST_DRIFTING = 10


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Where a series becomes steady, against the warm-up that was declared.

    ``detected`` is the index of the first steady value, or None if the series is too short to
    tell; ``agrees`` is False if warm-up seems to reach beyond the declared count or the values
    still drift at the end; ``message`` says so in words and is empty otherwise.
    """

    declared: int
    detected: int | None
    drifting: bool
    agrees: bool
    message: str


def _drifts(series: Floats, tolerance: float, fewest: int) -> bool:
    """Whether a series still rises or falls: Mann and Kendall's trend test at 1 %, and the
    medians of its first and last third differ by more than ``tolerance`` of the median. False for
    fewer values than ``fewest``.
    """
    if series.size < fewest:
        return False
    third = series.size // 3
    change = abs(float(np.median(series[-third:]) - np.median(series[:third])))
    if change <= tolerance * abs(float(np.median(series))):
        return False
    # Blocks keep the pairwise comparison small and average the noise of single steps.
    blocks = np.array([block.mean() for block in np.array_split(series, min(series.size, 100))])
    n = blocks.size
    score = float(np.sign(blocks[None, :] - blocks[:, None])[np.triu_indices(n, 1)].sum())
    deviation = np.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return bool(abs(score) / deviation > 2.576)


def _medians(values: Floats) -> Any:
    """np.median over the last axis, of finite values, for a tenth of what it costs on few."""
    half = values.shape[-1] // 2
    if values.shape[-1] % 2:
        return np.partition(values, half, axis=-1)[..., half]
    parts = np.partition(values, (half - 1, half), axis=-1)
    return (parts[..., half - 1] + parts[..., half]) / 2


def steady_state(
    series: ArrayLike,
    declared: int,
    tolerance: float = 0.05,
    width: float = 5.0,
    fewest_drifting: int = FEWEST_DRIFTING,
) -> SteadyState:
    """Compare a declared warm-up count with where ``series`` becomes steady.

    ``series`` holds times per step or epoch, [step] or [step, rank] (then the median over the
    ranks counts), the warm-up included; ``declared`` leading values are dropped by declaration.
    Steady is what lies within ``width`` robust standard deviations, or ``tolerance`` of the
    value if that is more, around the median of the second half, together with the median of the
    five values that follow. Dropping more than needed is no disagreement. Fewer values than
    ``fewest_drifting`` are not said to drift.
    Raises UserError if the declared warm-up leaves nothing.
    """
    array: NDArray[Any] = finite_values(series)
    if array.ndim == 2:
        array = _medians(array)
    n = array.size
    if declared < 0:
        raise ValueError("declared must not be negative")
    if declared >= n:
        raise UserError(f"a warm-up of {declared} leaves nothing of {n} values")
    if n < 4:
        return SteadyState(declared, None, False, True, "")
    tail = array[n - max(3, n // 2) :]
    centre = float(_medians(tail))
    spread = width * MAD_TO_STD * float(_medians(np.abs(tail - centre)))
    band = max(spread, tolerance * abs(centre))
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
    drifting = detected == n or _drifts(array[detected:], tolerance, fewest_drifting)
    message = ""
    if detected > declared:
        message = f"warm-up declared: {declared}, but values are steady only from {detected} on"
    if drifting:
        message = f"values still drift after the declared warm-up of {declared}"
    return SteadyState(declared, detected, drifting, not message, message)
