"""The roofline of a layer: the least time that a machine could take, and what keeps it from less.

After S. Williams, A. Waterman and D. Patterson, Roofline: an insightful visual performance model
for multicore architectures, Communications of the ACM 52(4), 2009. With the FLOP F and bytes B of a
layer, and the ceilings P (FLOP/s) and W (bytes/s) of a machine, a layer takes at least
max(F / P, B / W). Its arithmetic intensity is F / B, the ridge of the roofline P / W.
"""

import math
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.stats import CONFIDENCE, Estimate, mean_of
from scalesweep.analysis.types import Floats

COMPUTE, MEMORY, LAUNCH, UNRATED = "compute", "memory", "launch", "unrated"
# Kinds of layers that multiply and add as the product or convolution does that the ceiling of
# computation was measured with. What others compute (roots, exponentials, comparisons, sums over a
# few values) no measured ceiling is of.
PRODUCTS = frozenset(("conv1d", "conv2d", "conv3d", "dense", "lstm", "gru"))


@dataclass(frozen=True)
class Roof:
    """Ceilings in FLOP/s and bytes/s."""

    flops: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """Arithmetic intensity (FLOP/byte) from which on a layer can reach ``flops``."""
        return self.flops / self.bytes_per_s

    def least_s(self, flop: float, moved: float) -> float:
        """The least seconds that so many FLOP and bytes take."""
        return max(flop / self.flops, moved / self.bytes_per_s)

    def rate(self, intensity: float) -> float:
        """FLOP/s that a layer of an arithmetic intensity can reach at most."""
        return min(self.flops, intensity * self.bytes_per_s)

    def class_of(self, kind: str, flop: float, moved: float, launch_s: float) -> str:
        """What bounds a layer of a kind.

        ``launch``: the roofline's least time is shorter than what starting its operations takes
        (``launch_s``), so that no faster machine would help; otherwise ``compute`` or ``memory``,
        whichever takes longer. A layer without products whose FLOP would take longer than its bytes
        is ``unrated``: how fast they could be computed was not measured.
        """
        if self.least_s(flop, moved) < launch_s:
            return LAUNCH
        if flop / self.flops < moved / self.bytes_per_s:
            return MEMORY
        return COMPUTE if kind in PRODUCTS else UNRATED


def rated_flop(kind: str, flop: float) -> float:
    """The FLOP of a layer that a ceiling of products says how long they take at least."""
    return flop if kind in PRODUCTS else 0.0


def share_of(shares: Floats, least: Estimate, level: float = CONFIDENCE) -> Estimate:
    """The mean of shares over repeats that share an uncertain numerator, and its 95 % interval.

    ``least``: that numerator, as a time under a ceiling is. Its interval is added in quadrature to
    that of the repeats (``level`` as in ``mean_of``), both on logarithms. No interval where either
    is not known.
    """
    mean = mean_of(shares, level)
    relative = [
        [end / each.value if end and each.value > 0 else math.nan for end in (each.low, each.high)]
        for each in (mean, least)
    ]
    below, above = np.sqrt((np.log(relative) ** 2).sum(axis=0))
    ends = (mean.value * math.exp(-below), mean.value * math.exp(above))
    return Estimate.of(mean.value, *(ends if math.isfinite(below + above) else (None, None)))
