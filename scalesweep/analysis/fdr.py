"""Many tests at once: p values corrected for their number."""

from collections.abc import Sequence

import numpy as np


def adjusted_p(values: Sequence[float]) -> list[float]:
    """p values corrected after Benjamini and Hochberg (1995), in the order given.

    The share of false ones among those below a level is at most that level on average, if the
    values are independent: they are of different points, which share no run.
    """
    p = np.asarray(values, np.float64)
    order = np.argsort(p)
    scaled = p[order] * p.size / np.arange(1, p.size + 1)
    result = np.empty(p.size)
    result[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return [float(value) for value in result]
