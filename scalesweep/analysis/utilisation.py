"""Utilisation of a training: tokens, FLOP and peaks of its ranks put together.

Model FLOP/s are tokens/s times the FLOP of a token by a convention (``flop_conventions``); MFU is
that over the peak of all ranks, HFU the same with what is computed again (``TokenFlop.hardware``).
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.flop_conventions import CONVENTIONS, TokenFlop
from scalesweep.analysis.model_shape import ModelShape

_TOKENS, _SAMPLES = "tokens/s", "samples/s"
# Metrics that are the time of a step; of others with a unit of time that is not known.
_STEP_TIMES = ("step_time", "iteration_time")
_SECONDS = {"s": 1.0, "ms": 1e-3}
# How near to a simple factor, and to a convention or another peak, a ratio has to be to name it.
_NEAR, _CLOSE = 0.03, 0.005


class RateSource(NamedTuple):
    """The metric of a run from which its tokens per second follow, with its unit and scope."""

    metric: str
    unit: str
    scope: str

    def tokens_per_second(self, value: float, shape: ModelShape, ranks: int) -> float | None:
        """Tokens/s of all ranks; None where the shape lacks what that takes."""
        whole = value * ranks if self.scope == "rank" else value
        if self.unit == _TOKENS:
            return whole
        if self.unit == _SAMPLES:
            return whole * shape.sequence
        if shape.global_batch is None:
            return None
        return shape.global_batch * shape.sequence / (value * _SECONDS[self.unit])


def rate_source(metrics: Mapping[str, Mapping[str, str]], main: str | None) -> RateSource | None:
    """From which of the ``metrics`` (``unit``, ``scope`` and ``better`` by name) tokens/s follow.

    Tokens/s before samples/s before the time of a step; of several the ``main`` metric, then one of
    all ranks. None where there is none.
    """
    order = {
        name: (
            kind,
            name != main,
            described["scope"] == "rank",
        )
        for name, described in metrics.items()
        if (kind := _kind(name, described)) is not None
    }
    if not order:
        return None
    name = min(order, key=order.__getitem__)
    return RateSource(name, metrics[name]["unit"], metrics[name]["scope"])


def _kind(name: str, described: Mapping[str, str]) -> int | None:
    """Which metrics come first; None for one that says nothing of tokens/s."""
    unit, better = described["unit"], described["better"]
    if better == "higher" and unit in (_TOKENS, _SAMPLES):
        return (_TOKENS, _SAMPLES).index(unit)
    return 2 if name in _STEP_TIMES and unit in _SECONDS and better == "lower" else None


def token_flops(shape: ModelShape) -> dict[str, TokenFlop]:
    """FLOP of a token by every convention that the shape states enough for."""
    flops = {}
    for name, convention in CONVENTIONS.items():
        flop = convention.flop(shape) if convention.flop else None
        if flop is not None:
            flops[name] = flop
    return flops


def impossible(share: float, ranks: int, *, recomputes: bool = False) -> str:
    """The likely cause of a share of a peak above 1, in words.

    ``recomputes``: only with what the backward pass computes again is it above 1.
    """
    if recomputes:
        return "less is computed again than is stated, or the peak is of a slower device, probably"
    causes = []
    if 0.05 < share / 100 <= 1:
        causes.append("a percentage that was taken for a share")
    if ranks > 1 and 0.02 < share / ranks <= 1:
        causes.append(
            f"over {ranks} ranks it is {share / ranks:.3g}: tokens/s, or FLOP/s, of all ranks were "
            "held against the peak of one (scope: total says so)"
        )
    if not causes:
        causes.append(
            "the peak is of a slower device, of another type of numbers or of one die of two, or "
            "the convention counts FLOP that are not computed"
        )
    return "; or ".join(causes) + ", probably"


def unlike(printed: float, computed: float, shape: ModelShape, flop: TokenFlop, ranks: int) -> str:
    """The likely cause of a printed utilisation that its own inputs do not give, in words; empty
    where none is known.

    ``flop``: of the convention by which ``computed`` was worked out.
    """
    ratio = printed / computed
    causes: list[tuple[float, float, str]] = [
        (ranks, _NEAR, "FLOP/s of all ranks over the peak of one, perhaps"),
        (1 / ranks, _NEAR, "FLOP/s of one rank over the peak of all, perhaps"),
        (100, _NEAR, "a percentage that was taken for a share, perhaps"),
        *(
            (other.model / flop.model, _CLOSE, f"the convention {name} gives it")
            for name, other in token_flops(shape).items()
        ),
        *((peak, _CLOSE, f"the peak of {name} gives it") for name, peak in _peaks(shape).items()),
        (0.5, _NEAR, "half of it: over the peak with structured sparsity, perhaps"),
        (2, _NEAR, "twice as much: tokens or FLOP were counted twice, perhaps"),
    ]
    fitting = (
        cause
        for factor, within, cause in causes
        if factor != 1 and math.isclose(ratio, factor, rel_tol=within)
    )
    return next(fitting, "")


def _peaks(shape: ModelShape) -> dict[str, float]:
    """The peak that a model states over others that authors take: of its device for other types,
    and of other devices for its type; by their names."""
    device = DEVICES.get(shape.device or "")
    own = device.peak(shape.dtype, shape.float8_share) if device and shape.dtype else None
    if own is None:
        return {}
    return {
        f"{name} in {dtype}": own / peak
        for name, other in DEVICES.items()
        for dtype, peak in other.flops.items()
        if shape.device == name or dtype == shape.dtype
        if peak != own
    }
