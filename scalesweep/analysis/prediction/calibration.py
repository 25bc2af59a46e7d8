"""What intervals are made of where a series does not say it itself.

Found by ``python -m bench.lib.prediction_calibration``: the values under which the logarithmic
score of forecasts (from every first three or more counts of a series, of all larger ones) is best
over simulated laws with and without a change of regime and over the public series of
``public_series``; then scaled until 95 % intervals from the smaller half hold in at least 93.5 % of
the simulated rows of the larger without a change and in 86 % with one. No value is of one series.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """Of one side of an interval.

    Factors of the scatter of points (``noise``), of the spread of the ``models`` and of the rate of
    rolling errors (``regime``); the ``power`` of the number of doublings by which that grows; and
    the share of the expected change that may be wrong (``slope``).
    """

    noise: float
    models: float
    regime: float
    power: float
    slope: float


@dataclass(frozen=True)
class Calibration:
    """Of one kind of scaling.

    ``scatter``: relative scatter between runs that is expected before any is seen; ``rate``:
    relative error of a forecast over one doubling, likewise, which weighs as much as ``strength``
    rolling forecasts; ``low``, ``high``: the sides towards lower and higher cost; ``degrees``: of
    Student's t.
    """

    scatter: float
    rate: float
    strength: float
    low: Side
    high: Side
    degrees: float = 3.0


CALIBRATION: Mapping[str, Calibration] = {
    "weak": Calibration(
        scatter=0.0069,
        rate=0.0419,
        strength=41.9,
        low=Side(noise=0.428, models=0.228, regime=0.0946, power=0.548, slope=0.448),
        high=Side(noise=1.09, models=0.219, regime=0.386, power=1.08, slope=0.121),
    ),
    "strong": Calibration(
        scatter=0.0104,
        rate=0.0348,
        strength=15.2,
        low=Side(noise=0.364, models=0.495, regime=0.0651, power=0.679, slope=0.0387),
        high=Side(noise=0.972, models=0.512, regime=0.492, power=1.52, slope=0.0912),
    ),
}
