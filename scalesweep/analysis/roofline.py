"""The roofline of a layer: the least time that a machine could take, and what keeps it from less.

After S. Williams, A. Waterman and D. Patterson, Roofline: an insightful visual performance model
for multicore architectures, Communications of the ACM 52(4), 2009. With the FLOP F and bytes B of a
layer, and the ceilings P (FLOP/s) and W (bytes/s) of a machine, a layer takes at least
max(F / P, B / W). Its arithmetic intensity is F / B, the ridge of the roofline P / W.
"""

import math
from dataclasses import dataclass

from scalesweep.analysis.stats import Interval, mean_interval
from scalesweep.analysis.types import Floats

COMPUTE, MEMORY, LAUNCH = "compute", "memory", "launch"
CLASSES = (COMPUTE, MEMORY, LAUNCH)


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

    def class_of(self, flop: float, moved: float, launch_s: float) -> str:
        """What bounds a layer.

        ``launch``: the roofline's least time is shorter than what starting its operations takes
        (``launch_s``), so that no faster machine would help; otherwise ``compute`` or ``memory``,
        whichever takes longer.
        """
        if self.least_s(flop, moved) < launch_s:
            return LAUNCH
        return COMPUTE if flop / self.flops >= moved / self.bytes_per_s else MEMORY

    def shared(self, ranks: float) -> "Roof":
        """The same for one of so many ranks that share it."""
        return Roof(self.flops / ranks, self.bytes_per_s / ranks)


def intensity(flop: float, moved: float) -> float:
    """FLOP per byte; NaN where no bytes are moved."""
    return flop / moved if moved > 0 else math.nan


def share_interval(shares: Floats, width: float) -> Interval:
    """95 % interval of the mean of shares over repeats that share an uncertain ceiling.

    ``width`` is half the width of the ceiling's interval on the logarithmic scale: it is added in
    quadrature to that of the repeats. No interval where either is not known (NaN).
    """
    value = float(shares.mean())
    bounds = mean_interval(shares)
    if math.isnan(width) or not bounds.low > 0:
        return Interval(math.nan, math.nan, "none")
    low, high = (
        value * math.exp(math.copysign(math.hypot(math.log(edge / value), width), edge - value))
        for edge in (bounds.low, bounds.high)
    )
    return Interval(low, high, bounds.method)
