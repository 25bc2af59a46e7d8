"""Which of several effects, measured in the same runs, is the largest: decided jointly.

An effect is a sum of means over independent groups of runs, such as a term of the step at this
point less the same term at the reference. Two effects of the same runs share what disturbed these,
so their difference is taken within each run first. The largest measured effect is the largest only
if it exceeds each other one, and 0: the p value of that claim is the largest of the p values
against each (an intersection-union test; Berger, Technometrics 24, 1982). Choosing the largest by
the same data needs no further correction: with two equal effects the two-sided test at 5 % names
one of them in 5 % of cases, with more of them in fewer (Gutmann and Maymin, Annals of Statistics
15, 1987). tests/acceptance/test_clear.py simulates it.

Pure functions on NumPy arrays.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.stats import (
    LogError,
    cautious_degrees,
    joined,
    one_sidedness,
    t_chance,
    t_quantile,
)
from scalesweep.analysis.types import Floats

# What each run adds to an effect, by group of runs: the effect is the sum of the groups' means.
Effect = Mapping[Any, Floats]


@dataclass(frozen=True)
class Lead:
    """The largest of several effects.

    ``margin``: how far it lies above the next one, or above 0 where that is closer, in the effects'
    unit; ``low``: its lower 95 % bound, positive where the effect is clearly the largest; ``p``:
    two-sided p value of that. NaN and 1 where a group has one run only.
    """

    name: str
    margin: float
    low: float
    p: float


def lead_of(effects: Mapping[str, Effect], paired: bool = False) -> Lead | None:
    """The largest of ``effects``, against each other one and against 0; None if there is none.

    ``paired``: run i of one group ran in the same block as run i of each other group, so that
    groups are added run by run.
    """
    if not effects:
        return None
    values = {name: _difference(effect, {}, paired) for name, effect in effects.items()}
    best = max(values, key=lambda name: values[name].value)
    rivals = [values[best]]
    rivals += [_difference(effects[best], e, paired) for n, e in effects.items() if n != best]
    return Lead(
        best,
        min(rival.value for rival in rivals),
        min((rival.low for rival in rivals), key=lambda low: -math.inf if math.isnan(low) else low),
        max(rival.p for rival in rivals),
    )


@dataclass(frozen=True)
class _Difference:
    value: float
    low: float
    p: float


def _difference(effect: Effect, other: Effect, paired: bool) -> _Difference:
    """What one effect has more than another: Welch's t over the groups of runs."""
    groups = [_apart(effect, other, group) for group in dict.fromkeys([*effect, *other])]
    if paired and len({group.size for group in groups}) == 1:
        groups = [np.asarray(sum(groups), np.float64)]
    value = float(sum(group.mean() for group in groups))
    # A group in which both effects are the same, such as none, has nothing to scatter.
    groups = [group for group in groups if group.any()]
    if any(group.size < 2 for group in groups):
        return _Difference(value, math.nan, 1.0)
    sides = [
        LogError(float(group.std(ddof=1)) / math.sqrt(group.size), group.size - 1)
        for group in groups
    ]
    error = joined(sides)
    if error.error == 0:  # repeats that are the same number say nothing about their scatter
        return _Difference(value, math.nan, 1.0)
    degrees = cautious_degrees(
        error.degrees, min(group.size for group in groups), _one_sided(effect, other)
    )
    p = t_chance(value, error.error, degrees)
    return _Difference(
        value, value - t_quantile(error.degrees) * error.error, p if value > 0 else 1.0
    )


def _one_sided(effect: Effect, other: Effect) -> float:
    """How much of the skewness of its parts the difference of two effects has; those of the
    reference are subtracted in an effect, as they are negative."""
    sides: dict[bool, list[float]] = {True: [], False: []}
    for of, sign in ((effect, 1), (other, -1)):
        for values in of.values():
            # A single run tells no scatter.
            each = float(values.var(ddof=1) / values.size) if values.size > 1 else math.nan
            sides[sign * float(values.mean()) >= 0].append(each)
    return one_sidedness(sides[True], sides[False])


def _apart(effect: Effect, other: Effect, group: Hashable) -> Floats:
    """What each run of a group adds to the difference of two effects."""
    mine, theirs = effect.get(group), other.get(group)
    if mine is None:
        assert theirs is not None
        return -theirs
    return mine if theirs is None else mine - theirs
