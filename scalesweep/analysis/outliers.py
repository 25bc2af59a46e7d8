"""Repeats far from their peers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scalesweep.analysis.stats import MAD_TO_STD, finite_values

# The same for the mean absolute deviation, sqrt(pi / 2).
MEAN_AD_TO_STD = 1.253314
OUTLIER_SCORE = 3.5
OUTLIER_FROM = 5


@dataclass(frozen=True, slots=True)
class Outlier:
    """A value far from the median of its peers, with the reason in words."""

    name: str
    value: float
    score: float
    reason: str


def outliers(values: ArrayLike, names: Sequence[str]) -> list[Outlier]:
    """Values whose modified z-score exceeds 3.5, named; nothing is dropped.

    Score = |x - median| / (1.4826 MAD) (Iglewicz and Hoaglin, 1993, with their threshold), or
    over 1.2533 times the mean absolute deviation where more than half of the values are equal.
    Fewer than 5 values say nothing about what is far, so none is named.
    """
    array = finite_values(values).reshape(-1)
    if len(names) != array.size:
        raise ValueError(f"{array.size} values but {len(names)} names")
    if array.size < OUTLIER_FROM:
        return []
    centre = float(np.median(array))
    distance = np.abs(array - centre)
    spread = MAD_TO_STD * float(np.median(distance))
    if spread == 0:
        spread = MEAN_AD_TO_STD * float(distance.mean())
    if spread == 0:
        return []
    outliers = []
    for name, value, score in zip(names, array.tolist(), (distance / spread).tolist(), strict=True):
        if score > OUTLIER_SCORE:
            side = "above" if value > centre else "below"
            reason = (
                f"{value:.6g} lies {score:.1f} robust standard deviations {side} "
                f"the median {centre:.6g} of {array.size}"
            )
            outliers.append(Outlier(name, value, score, reason))
    return outliers
