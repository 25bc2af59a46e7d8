"""Why a utilisation cannot be, or does not follow from what a source prints, in words."""

import math

from scalesweep.analysis.device_peaks import DEVICES, device_peak
from scalesweep.analysis.flop_conventions import TokenFlop, token_flops
from scalesweep.analysis.model_shape import ModelShape

# How near to a simple factor, and to a convention or another peak, a ratio has to be to name it.
_NEAR, _CLOSE = 0.03, 0.005


def impossible(share: float, ranks: int, *, recomputes: bool = False) -> str:
    """The likely cause of a share of a peak above 1.

    ``recomputes``: only with what the backward pass computes again is it above 1.
    """
    if recomputes:
        return "less is computed again than is stated, or the peak is of a slower device, probably"
    if 0.05 < share / 100 <= 1:
        return "a percentage taken for a share, probably"
    if ranks > 1 and 0.02 < share / ranks <= 1:
        return "a rate of all ranks over the peak of one, probably"
    return "a peak of a slower device or other numbers, or FLOP that nothing computes, probably"


def unlike(printed: float, computed: float, shape: ModelShape, flop: TokenFlop, ranks: int) -> str:
    """The likely cause of a printed utilisation that its own inputs do not give; empty where none
    is known.

    ``flop``: of the convention by which ``computed`` was worked out.
    """
    causes = [
        (ranks, _NEAR, "FLOP/s of all ranks over the peak of one, perhaps"),
        (1 / ranks, _NEAR, "FLOP/s of one rank over the peak of all, perhaps"),
        (100, _NEAR, "a percentage taken for a share, perhaps"),
        *(
            (other.model / flop.model, _CLOSE, f"the convention {name} gives it")
            for name, other in token_flops(shape).items()
        ),
        *((peak, _CLOSE, f"the peak of {name} gives it") for name, peak in _peaks(shape).items()),
        (0.5, _NEAR, "half of it: over the peak with structured sparsity, perhaps"),
        (2, _NEAR, "twice as much: tokens or FLOP were counted twice, perhaps"),
    ]
    for factor, within, cause in causes:
        if factor != 1 and math.isclose(printed / computed, factor, rel_tol=within):
            return cause
    return ""


def _peaks(shape: ModelShape) -> dict[str, float]:
    """The peak that a model states over others that authors take: of its device for other types,
    and of other devices for its type; by their names."""
    own = device_peak(shape)
    return {
        f"{name} in {dtype}": own / peak
        for name, other in (DEVICES.items() if own else ())
        for dtype, peak in other.flops.items()
        if own and peak != own and (shape.device == name or dtype == shape.dtype)
    }
