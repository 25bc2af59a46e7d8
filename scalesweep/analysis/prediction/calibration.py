"""What intervals are made of where a series does not say it itself.

Found by ``python -m bench.lib.prediction_calibration`` from the published series in
``bench.lib.prediction_series`` (each with its source; every cluster counts as much as any other,
however many series it has) and from simulated laws: first the values under which the likelihood of
the forecasts of every first three or more counts is best, then a factor by which intervals hold
clusters that the values were found without. No value is of one series; the script prints what it
gave.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """Of one side of an interval.

    Factors of the spread of the ``models``, of the rate of rolling errors (``regime``) and of the
    growth of the ``newest`` rolling error; the ``power`` of the number of doublings by which
    ``regime`` grows; the share of the expected change that may be wrong (``slope``); and the
    logarithm of what a border may cost that may lie before the target (``border``).
    """

    models: float
    regime: float
    newest: float
    power: float
    slope: float
    border: float


@dataclass(frozen=True)
class Calibration:
    """Of one kind of scaling.

    ``shift``: what costs grow beyond what is said, over the growth that is expected; ``rate``:
    relative error of a forecast over one doubling before any is seen, which weighs as much as
    ``strength`` rolling forecasts; ``few``: power by which the rate falls with the measured counts
    (from 1 at three); ``spread``: standard deviation of the growth across a border among similar
    series over that growth (of logarithms), which weighs as much as two of them; ``low``,
    ``high``: the sides towards lower and higher cost; ``degrees``: of Student's t.
    """

    shift: float
    rate: float
    strength: float
    few: float
    spread: float
    low: Side
    high: Side
    degrees: float = 3.0


CALIBRATION: Mapping[str, Calibration] = {
    "weak": Calibration(
        shift=0.154, spread=0.557, rate=0.0471, strength=72.3, few=0.0475, degrees=4.43,
        low=Side(
            models=0.141, regime=0.038, newest=0.0595, power=0.431, slope=0.461, border=0.00456,
        ),
        high=Side(
            models=0.127, regime=0.463, newest=0.174, power=0.871, slope=0.279, border=0.198,
        ),
    ),
    "strong": Calibration(
        shift=0.0991, spread=0.5, rate=0.112, strength=19.2, few=0.177, degrees=7.01,
        low=Side(
            models=1.7, regime=0.0556, newest=0.509, power=0.594, slope=0.123, border=0.0166,
        ),
        high=Side(
            models=0.588, regime=0.854, newest=0.185, power=0.915, slope=0.0822, border=0.128,
        ),
    ),
}  # fmt: skip
