"""What intervals are made of where a series does not say it itself.

Found by ``python -m bench.lib.prediction_calibration`` from the published series in
``bench.lib.prediction_series`` (each with its source; every cluster counts as much as any other,
however many series it has) and from simulated laws: first the values under which the likelihood of
the forecasts of every first three or more counts is best, then the degrees of freedom and a factor
for each side. No value is of one series; the script prints what it gave.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """Of one side of an interval.

    Factors of the scatter of points (``noise``), of the spread of the ``models``, of the rate of
    rolling errors (``regime``), of the growth of the ``newest`` rolling error, and of what similar
    series that crossed a border differ in (``similar``); the ``power`` of the number of doublings
    by which ``regime`` grows; the share of the expected change that may be wrong (``slope``); and
    the logarithm of what a border may cost that may lie before the target (``border``).
    """

    noise: float
    models: float
    regime: float
    newest: float
    power: float
    slope: float
    border: float
    similar: float


@dataclass(frozen=True)
class Calibration:
    """Of one kind of scaling.

    ``scatter``: relative scatter between runs that is expected before any is seen; ``rate``:
    relative error of a forecast over one doubling, likewise, which weighs as much as ``strength``
    rolling forecasts; ``few``: power by which the rate falls with the measured counts (from 1 at
    three); ``spread``: standard deviation of the growth across a border among similar series over
    that growth (of logarithms), which weighs as much as two of them; ``low``, ``high``: the sides
    towards lower and higher cost; ``degrees``: of Student's t.
    """

    scatter: float
    rate: float
    strength: float
    few: float
    spread: float
    low: Side
    high: Side
    degrees: float = 3.0


CALIBRATION: Mapping[str, Calibration] = {
    "weak": Calibration(
        scatter=0.00775, rate=0.0789, strength=66.1, few=0.0714, spread=0.33, degrees=3.26,
        low=Side(
            noise=0.271, models=0.568, regime=0.126, newest=0.0805,
            power=0.314, slope=0.746, border=0.008, similar=1.06,
        ),
        high=Side(
            noise=0.469, models=0.202, regime=0.49, newest=0.563,
            power=0.726, slope=0.44, border=0.174, similar=1.2,
        ),
    ),
    "strong": Calibration(
        scatter=0.00928, rate=0.131, strength=18.5, few=0.14, spread=0.5, degrees=6.35,
        low=Side(
            noise=0.25, models=1.84, regime=0.0748, newest=0.147,
            power=0.343, slope=0.0349, border=0.0157, similar=0.77,
        ),
        high=Side(
            noise=1.73, models=1.08, regime=0.6, newest=0.147,
            power=0.979, slope=0.0978, border=0.108, similar=0.77,
        ),
    ),
}  # fmt: skip
