"""What intervals are made of where a series does not say it itself.

Found by ``python -m bench.lib.prediction_calibration``: the values under which the logarithmic
score of forecasts (fitted on the smaller half of the counts, scored on the larger) is best over
simulated laws with and without a change of regime and over the public series of ``public_series``;
then widened until 95 % intervals hold in at least 93.5 % of simulated rows without a change and in
86 % with one. No value is of one series.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Calibration:
    """Of one kind of scaling.

    ``scatter``: relative scatter between runs that is expected before any is seen; ``rate``:
    relative error of a forecast over one doubling, likewise, which weighs as much as ``strength``
    rolling forecasts; ``power``: of the number of doublings; ``models``, ``noise``: factors of the
    spread of the models and of the scatter; ``slope``: share of the slope that may be wrong;
    ``up``, ``down``: factors of the bounds towards higher and lower cost; ``degrees``: of
    Student's t.
    """

    scatter: float
    rate: float
    strength: float
    models: float
    noise: float
    power: float
    up: float
    down: float
    slope: float
    degrees: float = 3.0


CALIBRATION: Mapping[str, Calibration] = {
    "weak": Calibration(
        scatter=0.0065,
        rate=0.022,
        strength=22.95,
        models=2.16,
        noise=3.27,
        power=1.53,
        up=0.386,
        down=0.190,
        slope=0.943,
    ),
    "strong": Calibration(
        scatter=0.0075,
        rate=0.0295,
        strength=7.93,
        models=1.84,
        noise=2.92,
        power=1.67,
        up=0.446,
        down=0.178,
        slope=0.409,
    ),
}
