"""Slow links of a network, by a test of all links of a class at once.

Logarithms of the latencies of links of one class (within a host, between hosts) are taken to be
normal but for a minority that is slow. A link is slow if it lies more robust standard deviations
(1.4826 MAD) above the median than the largest of as many normal values does in 5 % of cases, and
takes at least 25 % longer than the median. The threshold is that of Student's t at 0.05 over the
number of links (Bonferroni), with 0.37 degrees of freedom for each link: what the MAD knows of a
spread is 37 % of what the standard deviation does (P. J. Huber, Robust Statistics, 1981, 5.1).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.stats import MAD_TO_STD
from scalesweep.analysis.types import Floats

# Of fewer links of a class none is called slow: what is usual among them is not known.
FEWEST_LINKS = 8
FALSE_ALARMS = 0.05
# What is slower by less is no reason to look at a cable.
LEAST_EXCESS = 0.25
# Where more than this share of a class is slow, it is of several kinds rather than broken.
FEW = 0.2
_EFFICIENCY = 0.37
# Clocks and schedulers have a grain: latencies never agree to better than this.
_GRAIN = 0.01


@dataclass(frozen=True)
class Judged:
    """The links of a class: what is usual, and how far from it each is."""

    typical: float  # the median, s
    score: Floats  # robust standard deviations above it
    threshold: float  # of the score; NaN where there are too few links
    slow: NDArray[np.bool_]


def judge_links(seconds: Floats) -> Judged:
    """The links of one class by their latencies ``seconds`` ``[link]``, all positive."""
    logs = np.log(seconds)
    centre = float(np.median(logs))
    spread = max(MAD_TO_STD * float(np.median(np.abs(logs - centre))), _GRAIN)
    score = (logs - centre) / spread
    count = len(seconds)
    if count < FEWEST_LINKS:
        return Judged(float(np.exp(centre)), score, float("nan"), np.zeros(count, np.bool_))
    from scipy.special import stdtrit

    threshold = float(-stdtrit(_EFFICIENCY * count, FALSE_ALARMS / count))
    far = logs - centre >= np.log1p(LEAST_EXCESS)
    return Judged(float(np.exp(centre)), score, threshold, (score > threshold) & far)
