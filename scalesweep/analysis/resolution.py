"""The resolution of the clock that a run's times were taken with, from the times themselves.

Times of a clock that counts in steps of q (or that are printed so) are multiples of q. A sum or a
difference of two is off by as much as q; by less on average where the times scatter by more than
q, but the largest of several ranks, the least, and a comparison step by step stay off.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.step_delays import FEWEST_STEPS
from scalesweep.analysis.step_work import SPAN_BETWEEN, SPANS, STEP_TIMES
from scalesweep.analysis.types import Floats

# A resolution below this share of a step is none to speak of. Simulated: at 1.5 % of a step what is
# said of it is right, at 3 % numbers are off by 3 %, at 15 % by factors.
COARSE_FROM = 0.005
# What is shorter than this many steps of the clock may be its rounding.
FEWEST_TICKS = 4.0
# Times of a rank, their different values without 0 (of several spans, of a single one, which may
# have a delay of one length), and neighbours one step of the clock apart.
_FEWEST_TIMES, _FEWEST_VALUES, _FEWEST_OF_SPAN, _FEWEST_CHANGES = 16, 2, 3, 3
_OFF = 0.02  # of the resolution: what a multiple of it is off by, at most
_STEADY = 0.5  # of neighbours in time: as long as each other, to the last digit


def resolution_of(samples: Mapping[str, NDArray[Any]], ranks: int) -> float:
    """Steps of the clock in s, of the rank with the coarsest; 0 where none shows that is coarse.

    By rank from its ``step_times`` and spans, each alone and all together; of all ranks together
    where times hardly change from step to step.
    """
    arrays = [
        np.asarray(samples[name], np.float64)
        for name in (STEP_TIMES, *SPANS, SPAN_BETWEEN)
        if name in samples and samples[name].ndim == 2 and samples[name].shape[1] == ranks
        and samples[name].dtype.kind in "fiu" and np.isfinite(samples[name]).all()
    ]  # fmt: skip
    if not arrays or STEP_TIMES not in samples or len(arrays[0]) < FEWEST_STEPS:
        return 0.0
    least = COARSE_FROM * float(np.median(arrays[0]))
    coarsest = 0.0
    for rank in range(ranks) if least > 0 else ():
        own = [values[:, rank] for values in arrays]
        steps = [step_of_clock(times, least, _FEWEST_OF_SPAN) for times in own]
        coarsest = max(coarsest, step_of_clock(np.concatenate(own), least), *steps)
    same = [float((np.diff(values, axis=0) == 0).mean()) for values in arrays if len(values) > 1]
    if not coarsest and least > 0 and np.mean(same) >= _STEADY:
        together = np.concatenate([values.T.ravel() for values in arrays])
        return step_of_clock(together, least, changes=0)
    return coarsest


def step_of_clock(
    times: Floats, least: float, fewest: int = _FEWEST_VALUES, changes: int = _FEWEST_CHANGES
) -> float:
    """The step of which times, one after the other, are multiples, if it is ``least`` or more;
    else 0. ``fewest`` values differ, and ``changes`` times they do by one such step in a row."""
    values = np.sort(times[times > least / 2])
    if values.size < _FEWEST_TIMES:
        return 0.0
    apart = np.diff(values)
    apart = apart[apart > _OFF * least]  # what is closer may be one value
    if apart.size < fewest - 1 or apart.min() < least:
        return 0.0
    step = float(apart.min())
    for _ in range(2):
        counts = np.rint(values / step)
        if not counts.all():
            return 0.0
        step = float((counts * values).sum() / (counts**2).sum())
    off = np.abs(values / step - np.rint(values / step)) > _OFF
    single = np.abs(np.rint(np.diff(times) / step)) == 1
    return step if not off.any() and int(single.sum()) >= changes else 0.0
