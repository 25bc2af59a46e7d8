"""Repeats far from their peers."""

import numpy as np
from numpy.typing import ArrayLike

from scalesweep.analysis.stats import MAD_TO_STD, finite_values

# The same for the mean absolute deviation, sqrt(pi / 2).
MEAN_AD_TO_STD = 1.253314
OUTLIER_SCORE = 3.5
OUTLIER_FROM = 5


def outliers(values: ArrayLike) -> dict[int, str]:
    """Why values are outliers, in words, by their places; nothing is dropped.

    Those whose modified z-score exceeds 3.5: |x - median| / (1.4826 MAD) (Iglewicz and Hoaglin,
    1993, with their threshold), or over 1.2533 times the mean absolute deviation where more than
    half of the values are equal. Fewer than 5 values say nothing about what is far.
    """
    array = finite_values(values).reshape(-1)
    if array.size < OUTLIER_FROM:
        return {}
    centre = float(np.median(array))
    distance = np.abs(array - centre)
    spread = MAD_TO_STD * float(np.median(distance)) or MEAN_AD_TO_STD * float(distance.mean())
    return {
        int(place): f"{array[place]:.6g} lies {distance[place] / spread:.1f} robust standard "
        f"deviations {'above' if array[place] > centre else 'below'} the median {centre:.6g} of "
        f"{array.size}"
        for place in np.flatnonzero(distance > OUTLIER_SCORE * spread)
    }
