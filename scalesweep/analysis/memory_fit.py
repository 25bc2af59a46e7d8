"""Constants of the memory model, fitted to measured peaks, and how sure a verdict on a point is.

What a rank needs is ``states`` x (weights, gradients, optimiser) + ``activations`` x activations
+ ``logits`` x logits + ``overhead``. That a constant is near its default is an observation beside
the measured ones, so that few points change little. Residuals are ratios.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scalesweep.analysis.types import Floats

CONSTANTS = ("states", "activations", "logits", "overhead")
# Bytes that a rank has besides what the model counts: fits to PyTorch on the host, and to nanotron
# on GPUs, gave 0.4 GB.
_DEFAULT = np.array([1.0, 1.0, 1.0, 5e8])
# Standard deviation of a constant about its default before anything is measured.
_DOUBT = _DEFAULT * (0.3, 0.3, 0.5, 1.0)
_ROUNDS = 30
_LEAST_SCALE = 0.05  # of residuals
_HUBER = 1.5  # residuals beyond so many standard deviations count by their size, not its square
# Standard deviation of the logarithm of measured / predicted with the default constants, over
# published runs of two models.
DEFAULT_SPREAD = 0.25
LEAST_SPREAD = 0.1  # residuals of few points, or of points alike, say less than they seem to
LEAST_POINTS = 6  # with fewer, the spread is the default one
# Of what tensors need, what a device must have: fragments of the allocator, buffers of the exchange
# and the driver take the rest.
FRAGMENTS = 1.1
_FOLDS = 20
SURE = 0.9  # probability from which a verdict is likely

FITS, UNCERTAIN, TOO_LARGE = "fits", "uncertain", "will not fit"


@dataclass(frozen=True)
class MemoryFit:
    """Constants, with the spread of measured peaks about what they predict.

    ``spread``: standard deviation of the logarithm of measured / predicted; ``peaks``: measured
    peaks that they rest on.
    """

    states: float = 1.0
    activations: float = 1.0
    logits: float = 1.0
    overhead: float = 5e8  # bytes
    spread: float = DEFAULT_SPREAD
    peaks: int = 0

    @property
    def values(self) -> Floats:
        """The constants in the order of ``CONSTANTS``."""
        return np.array([getattr(self, name) for name in CONSTANTS])

    def needed(self, parts: Floats, of: str = "most") -> float:
        """Bytes of the rank that needs the most (``most``), of the first stage's (``first``), or of
        the mean one (``mean``). ``parts``: of ``memory_model.rank_bytes``."""
        return float(self.terms(parts, of) @ self.values)

    def terms(self, parts: Floats, of: str = "most") -> Floats:
        """What the constants multiply of that rank: states, activations, logits and 1."""
        terms = np.column_stack(
            [parts[:, :3].sum(axis=1), parts[:, 3], parts[:, 4], np.ones(len(parts))]
        )
        if of == "mean":
            return np.asarray(terms.mean(axis=0))
        return np.asarray(terms[0 if of == "first" else int((terms @ self.values).argmax())])

    def probability(self, parts: Floats, device: float) -> float:
        """How probable it is that a point does not fit a device of so many bytes."""
        distance = math.log(self.needed(parts) * FRAGMENTS / device) / self.spread
        return 0.5 * math.erfc(-distance / math.sqrt(2))

    def verdict(self, parts: Floats, device: float) -> str:
        """``FITS`` or ``TOO_LARGE`` where that is likely (``SURE``), else ``UNCERTAIN``."""
        probability = self.probability(parts, device)
        if probability >= SURE:
            return TOO_LARGE
        return FITS if probability <= 1 - SURE else UNCERTAIN


def fit_memory(measured: Sequence[tuple[Floats, float]], of: str = "most") -> MemoryFit:
    """The constants that explain measured peaks.

    ``measured``: parts and peak in bytes of each point. ``of``: which rank a peak is of
    (``MemoryFit.needed``).
    """
    fit = MemoryFit(peaks=len(measured))
    if not measured:
        return fit
    peaks = np.array([peak for _, peak in measured])
    for _ in range(3):  # which stage needs the most depends on the constants
        shares = np.array([fit.terms(parts, of) for parts, _ in measured]) / peaks[:, None]
        states, activations, logits, overhead = _fitted(shares, fit.values)
        fit = MemoryFit(states, activations, logits, overhead, peaks=len(measured))
    if len(peaks) < LEAST_POINTS:
        return fit
    logs = np.log([fit.needed(parts, of) / peak for parts, peak in measured])
    squares = float((logs**2).sum()) / max(1, len(logs) - len(CONSTANTS))
    return replace(fit, spread=max(LEAST_SPREAD, math.sqrt(squares)))


def fits_without(measured: Sequence[tuple[Floats, float]], of: str = "most") -> list[MemoryFit]:
    """For each measured point the fit to the others: without it alone, or, of many, without it and
    every ``_FOLDS``-th besides."""
    folds = min(len(measured), _FOLDS)
    fits = [
        fit_memory([point for place, point in enumerate(measured) if place % folds != fold], of=of)
        for fold in range(folds)
    ]
    return [fits[place % folds] for place in range(len(measured))]


def _fitted(shares: Floats, values: Floats) -> list[float]:
    """The constants that make the sum of ``shares`` (terms over their peak) 1, none below 0.

    By least squares of relative residuals, large ones by their size (Huber's weights), with the
    defaults as further observations.
    """
    from scipy.optimize import nnls

    for _ in range(_ROUNDS):
        residuals = np.abs(shares @ values - 1)
        scale = DEFAULT_SPREAD
        if len(residuals) >= LEAST_POINTS:
            scale = max(_LEAST_SCALE, 1.4826 * float(np.median(residuals)))
        prior = np.diag(scale / _DOUBT)
        weights = np.sqrt(1 / np.maximum(1, residuals / (_HUBER * scale)))
        rows = np.vstack([shares * weights[:, None], prior])
        scaled = rows * _DEFAULT  # overhead is a billion times the others
        factors, _ = nnls(scaled, np.concatenate([weights, prior @ _DEFAULT]))
        before, values = values, factors * _DEFAULT
        if np.allclose(before, values, rtol=1e-4):
            break
    return [float(value) for value in values]
