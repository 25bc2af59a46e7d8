"""What noise sessions have: several kinds of it, weighted by how well each describes a series.

A few dozen sessions do not tell noise of each session's own from noise that neighbours share, under
which a few sessions in a row say much less. Instead of deciding for one kind, a p value is the mean
over all of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.stats import CONFIDENCE
from scalesweep.analysis.types import Floats

SPAN = 80  # sessions at most that noise is read from, the newest ones
# Sessions h apart are correlated by share x memory^h: a process of first order under noise that
# each session has for itself. The last memory is nearly a random walk; the first kind is white.
_KINDS = ((0.0, 0.0), *((s, m) for m in (0.5, 0.75, 0.9, 0.97) for s in (0.35, 0.65, 0.95)))
# Weight of white noise before any session is seen, the other kinds share the rest, by the number of
# sessions: 20 do not show which noise they have, and the more there are the more a wrong guess
# costs, evening by evening (bench/history.py).
_SESSIONS, _WHITE = (20, 30, 60), (0.1, 0.92, 0.8)
_STEP_COST = 1.5  # for each level more, times log n (Zhang and Siegmund 2007, to first order)
_LEAST_WEIGHT = 1e-4
# Of more than four new sessions a quarter may lie where they like.
_ALL, _ASIDE = 4, 0.25
# Tails that single sessions may have: Student's t of so many degrees of freedom, the last normal,
# and the weight of each before any session is seen.
_TAILS = np.array([2.5, 3.5, 5.0, 8.0, 1e6])
_TAIL_WEIGHTS = np.array([0.15, 0.15, 0.15, 0.15, 0.4])
_ROUNDS = 30  # of the fit of each one's scale


@dataclass(frozen=True)
class Noise:
    """Kinds of noise: ``weights[kind]`` (sum 1), ``scales[kind]`` (standard deviation of a
    session), ``degrees[kind]`` of freedom, and what sessions h apart have in common:
    ``shares[kind] * memories[kind]**h``."""

    weights: Floats
    scales: Floats
    degrees: Floats
    shares: Floats
    memories: Floats

    def errors(self, old: Sequence[int], new: Sequence[int]) -> Floats:
        """Standard error of the mean of the sessions ``new`` less that of ``old``, by kind."""
        places = np.array([*old, *new])
        contrast = np.repeat([-1 / len(old), 1 / len(new)], [len(old), len(new)])
        correlations = _correlations(self.shares, self.memories, places)
        variances = np.maximum(np.einsum("i,kij,j->k", contrast, correlations, contrast), 0.0)
        errors: Floats = self.scales * np.sqrt(variances)
        return errors

    def error(self, old: Sequence[int], new: Sequence[int]) -> float:
        """The same over all kinds: the root of the mean square."""
        return math.sqrt(float(self.weights @ self.errors(old, new) ** 2))

    def chance(self, shift: float, old: Sequence[int], new: Sequence[int]) -> float:
        """p value of a difference, two-sided: Student's t, the mean over all kinds."""
        return _mixture(shift, self.errors(old, new), self)

    def chance_if_white(self, shift: float, old: Sequence[int], new: Sequence[int]) -> float:
        """The same, did neighbouring sessions have nothing in common."""
        scale = float(self.weights @ self.scales)
        error = scale * math.sqrt(1 / len(old) + 1 / len(new))
        return _mixture(shift, np.full(self.weights.size, error), self)

    def half_width(self, old: Sequence[int], new: Sequence[int]) -> float:
        """Half the width of the 95 % interval of a difference: that of which p is 5 %."""
        errors = self.errors(old, new)
        low, high = 0.0, float(errors.max())
        while _mixture(high, errors, self) > 1 - CONFIDENCE:
            high *= 2
        for _ in range(50):
            middle = (low + high) / 2
            if _mixture(middle, errors, self) > 1 - CONFIDENCE:
                low = middle
            else:
                high = middle
        return high


def _mixture(shift: float, errors: Floats, noise: Noise) -> float:
    # Behind scipy.stats.t.sf; scipy.stats takes most of a second to import.
    from scipy.special import stdtr

    return float(noise.weights @ (2 * stdtr(noise.degrees, -abs(shift) / errors)))


def _correlations(shares: Floats, memories: Floats, places: NDArray[np.int64]) -> Floats:
    apart = np.abs(places[:, None] - places[None, :])
    correlation: Floats = shares[:, None, None] * memories[:, None, None] ** apart
    correlation[:, np.arange(places.size), np.arange(places.size)] = 1.0
    return correlation


def read_noise(
    centres: Floats, places: Sequence[int], ways: Sequence[Sequence[int]], floor: float
) -> Noise:
    """What the sessions at ``places`` say of their noise, whichever of several ways levels are cut.

    ``ways``: for each the first session of every level; fewer levels than sessions. ``floor``: the
    least standard deviation of a session, above 0. By restricted likelihood (Patterson and
    Thompson, Biometrika 58, 1971, 545-554), in which the levels cost no bias, with the penalty of
    the BIC for each level.
    """
    at = np.asarray(places, np.int64)
    values = centres[at]
    shares, memories = np.array(_KINDS).T
    white = float(np.interp(at.size, _SESSIONS, _WHITE))
    prior = np.full(len(_KINDS), (1 - white) / (len(_KINDS) - 1))
    prior[0] = white
    correlations = _correlations(shares, memories, at)
    inverse = np.linalg.inv(correlations)
    logs = np.linalg.slogdet(correlations)[1]
    cuts = {tuple(_levels(starts, at)) for starts in ways}
    scores, scales, degrees = [], [], []
    for cut in sorted(cuts):
        design = np.eye(max(cut) + 1)[list(cut)]  # session, level
        cross = design.T @ inverse  # kind, level, session
        inner = cross @ design
        means = np.linalg.solve(inner, (cross @ values)[:, :, None])
        left = values - (design @ means)[:, :, 0]
        square = np.einsum("ki,kij,kj->k", left, inverse, left)
        free = at.size - design.shape[1]
        variance = np.maximum(square / free, floor**2)
        inner_logs = np.linalg.slogdet(inner)[1] - np.log(design.sum(axis=0)).sum()
        score = -0.5 * (logs + inner_logs + at.size * np.log(variance) + square / variance)
        scores.append(score - _STEP_COST * math.log(at.size) * (design.shape[1] - 1))
        scales.append(np.sqrt(variance))
        degrees.append(np.full(len(_KINDS), float(free)))
    score = np.concatenate(scores)
    weights = np.tile(prior, len(cuts)) * np.exp(score - score.max())
    kept = weights > _LEAST_WEIGHT * weights.sum()
    many = [np.concatenate(scales), np.concatenate(degrees)]
    many += [np.tile(shares, len(cuts)), np.tile(memories, len(cuts))]
    return Noise(weights[kept] / weights[kept].sum(), *(values[kept] for values in many))


def _levels(starts: Sequence[int], at: NDArray[np.int64]) -> list[int]:
    """The level of each session, from 0."""
    of_session = np.searchsorted(np.sort(np.asarray(starts)), at, side="right")
    return [int(level) for level in np.unique(of_session, return_inverse=True)[1]]


def chance_of_each(off: Floats, left: Floats, spikes: Floats, scale: float) -> float:
    """p value of single sessions that all lie this far off, two-sided: what the mean of a few
    heavy-tailed ones leaves open, one of which may be far out by itself.

    ``off``: of each new session, positive in the direction of their mean; of more than four the
    lowest quarter is left aside. ``left``: sessions about their levels, without single ones that
    were off, by which several kinds of tails are weighted; ``spikes``: those single ones, with the
    sign of ``off``; ``scale``: standard deviation of a session, the least that tails have where
    they have one.
    """
    from scipy.special import bdtrc, stdtr

    most = off.size if off.size <= _ALL else math.ceil((1 - _ASIDE) * off.size)
    bound = float(np.sort(off)[::-1][most - 1])
    if bound <= 0:
        return 1.0
    weights, scales = _tails(left)
    scales = np.maximum(scales, scale * np.sqrt(1 - 2 / _TAILS))
    beyond = stdtr(_TAILS, -bound / scales)
    if spikes.size:
        beyond += (float((spikes > bound).sum()) + 0.5) / (left.size + spikes.size + 1)
    return float(weights @ np.minimum(1.0, 2 * bdtrc(most - 1, off.size, np.minimum(beyond, 1.0))))


def _tails(left: Floats) -> tuple[Floats, Floats]:
    """Weight (sum 1) and scale of each kind of tails, by maximum likelihood of the scale (the EM
    steps of Lange, Little and Taylor, J. Am. Stat. Assoc. 84, 1989, 881-896)."""
    from scipy.special import gammaln

    squares = left**2
    mean = float(squares.mean())
    if not mean > 0:
        return _TAIL_WEIGHTS, np.zeros(_TAILS.size)
    variances = np.full(_TAILS.size, mean)
    for _ in range(_ROUNDS):
        near = (_TAILS + 1) / (_TAILS + squares[:, None] / variances)
        variances = (near * squares[:, None]).mean(axis=0)
    constant = gammaln((_TAILS + 1) / 2) - gammaln(_TAILS / 2) - np.log(_TAILS * variances) / 2
    spread = (_TAILS + 1) / 2 * np.log1p(squares[:, None] / variances / _TAILS).sum(axis=0)
    scores = left.size * constant - spread
    weights = _TAIL_WEIGHTS * np.exp(scores - scores.max())
    return weights / weights.sum(), np.sqrt(variances)
