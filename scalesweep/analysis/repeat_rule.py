"""Repeats until a mean is precise: when to stop, and intervals that allow for having looked.

After a least number of repeats each point is looked at after every further one, and measured no
more once its interval is narrow enough. A point that happens to scatter little at first stops
early, with an interval that is too short: a 95 % interval by Student's t then covers the mean in 90
to 92 % of all cases where three repeats are the least (the purely sequential rule of Anscombe,
Journal of the Royal Statistical Society B 15, 1953, and of Chow and Robbins, Annals of Mathematical
Statistics 36, 1965, whose coverage is right in the limit of many repeats only).

So all intervals of such points, those that are compared with the target and those that are
reported, are taken at a higher level, ``level_of(least)`` = 95 % + 5.5 % / least: 96.8 % for three,
96.1 % for five, 95.55 % for ten. The form is ours, its constant was calibrated by simulation
(bench/repeats.py): whatever the ratio of spread to target, with which the coverage varies, a stated
95 % interval covers 93 to 97 %. (Repeated confidence intervals, Jennison and Turnbull, Journal of
the Royal Statistical Society B 51, 1989, hold at all looks at the same time, which needs more
repeats than a statement about the last one does.) Student's t is used for any number of repeats:
the bootstrap was not calibrated.

Standard library only; ``sequential`` does the sums.
"""

from dataclasses import dataclass

COVERAGE = 0.95
_EXTRA = 0.055  # calibrated: see above

# What is known of a point after a look. NEW: no repeat has begun; WAITING: a repeat that was asked
# for is missing; UNKNOWN: there are too few values; IDENTICAL: repeats are the same number, so more
# would say nothing.
NEW, PRECISE, MORE, WIDE = "new", "precise", "more", "wide"
WAITING, UNKNOWN, IDENTICAL = "waiting", "unknown", "identical"


@dataclass(frozen=True, slots=True)
class Look:
    """What the repeats of a point say so far.

    ``width``: half width of the interval over the mean (0.02 for 2 %; NaN if there is none).
    ``expected``: repeats in all after which the point is expected to be precise, by its spread so
    far, at most the maximum.
    """

    state: str
    width: float
    expected: int


def level_of(least: int) -> float:
    """Level at which intervals are taken, for a coverage of 95 % after looks from ``least`` on."""
    return COVERAGE + _EXTRA / least
