"""A series that changes steadily: a line rather than steps."""

from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.stats import CONFIDENCE, t_quantile
from scalesweep.analysis.types import Floats

SPAN = 100  # sessions at most, the newest ones
FEWEST = 60
RECENT = 30  # sessions that a step is told from a line by
_PLACE_COST = 2.0  # times log n: what the place of a step costs (Zhang and Siegmund 2007)
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


def slopes(centres: Floats, sessions: list[int], first: int) -> bool:
    """Whether a line describes the newest of some sessions as well as a step at ``first`` does:
    by a modified BIC."""
    since = sum(place >= first for place in sessions)
    newest = np.array(sessions[-max(RECENT, 2 * since) :])
    values = centres[newest] - centres[newest].mean()
    line = newest - newest.mean()
    step = (newest >= first) - (newest >= first).mean()
    total = float(values @ values)
    by_line, by_step = (total - float(x @ values) ** 2 / float(x @ x) for x in (line, step))
    cost = float(newest.size ** (_PLACE_COST / newest.size))
    return by_line <= by_step * cost
