"""A series that changes steadily: a line rather than steps."""

from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.stats import CONFIDENCE, t_quantile
from scalesweep.analysis.types import Floats

SPAN = 100  # sessions at most, the newest ones
FEWEST = 60
_BLOCKS = 10
# A line explains at least this much of the means of blocks. Two equal steps reach it in a fifth of
# series, three in most; a random walk on 3 % of evenings (bench/history.py).
_EXPLAINED = 0.95


@dataclass(frozen=True)
class Trend:
    """A steady change over the last ``sessions`` (their places, without spikes): ``change`` in all,
    on logarithms, with its 95 % interval."""

    sessions: tuple[int, ...]
    change: float
    low: float
    high: float


def steady_change(centres: Floats, sessions: list[int]) -> Trend | None:
    """The trend of the newest sessions among some, None where a line does not describe them.

    A straight line through the means of ten blocks of neighbouring sessions: noise that sessions
    pass on to the next, and weekly cycles, cancel within a block; a step or a pause bends the row
    of means.
    """
    if len(sessions) < FEWEST:
        return None
    newest = sessions[-SPAN:]
    blocks = np.array([part.mean() for part in np.array_split(centres[newest], _BLOCKS)])
    place = np.arange(_BLOCKS) - (_BLOCKS - 1) / 2
    off = blocks - blocks.mean()
    slope = float(place @ off) / float(place @ place)
    total = float(off @ off)
    left = off - slope * place
    if not total > 0 or 1 - float(left @ left) / total < _EXPLAINED:
        return None
    error = float(np.sqrt(left @ left / (_BLOCKS - 2) / (place @ place)))
    half = t_quantile(_BLOCKS - 2, level=CONFIDENCE) * error
    low, high = sorted(((slope - half) * _BLOCKS, (slope + half) * _BLOCKS))
    return Trend(tuple(newest), slope * _BLOCKS, low, high)
