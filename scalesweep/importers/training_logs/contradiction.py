"""Rates and FLOP/s of the same lines that cannot both be: one of the numbers was read wrongly."""

from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.flop_conventions import MFU, flop_metric
from scalesweep.core.formatting import number
from scalesweep.importers.training_logs.program import TOKENS

# Conventions differ by a factor of two; a comma or point that is misread makes 1000.
FACTOR = 10.0
# Attention's share of 6 N is T / (6 d) where blocks have 12 d^2 weights. Without the width of a
# model it is taken to be as narrow as this.
NARROWEST = 256
_RATES = ("model_flop_rate", "flops_per_device")


def contradiction(metrics: Mapping[str, Mapping[str, Any]], known: Mapping[str, Any]) -> str:
    """Why the printed FLOP/s, or MFU, of a device are too many for its tokens/s; empty where they
    are not, or where parameters and tokens of a sample are not stated.

    Too few are none: of a mixture of experts a token meets a small part of the parameters.
    """
    each, size = _tokens_of_a_device(metrics, known["ranks"]), known.get("model_parameters")
    if each is None or size is None:
        return ""
    length, width = known.get("sequence_length", 0), known.get("width", NARROWEST)
    needed = 6.0 * size * (1 + length / (6 * width))
    flops = {name: _flops(name, float(it["value"]), known) for name, it in metrics.items()}
    for name, value in flops.items():
        if value > FACTOR * needed * each:
            return (
                f"{name} of {number(float(metrics[name]['value']), 3)} is "
                f"{number(value / (needed * each), 2)} times what "
                f"{number(each, 4)} tokens/s of a device need at most with {size:,} "
                "parameters: was a number printed with other commas and points?"
            )
    return ""


def _tokens_of_a_device(metrics: Mapping[str, Mapping[str, Any]], ranks: int) -> float | None:
    if printed := metrics.get(f"{TOKENS}_per_device"):
        return float(printed["value"])
    return float(metrics[TOKENS]["value"]) / ranks if TOKENS in metrics else None


def _flops(name: str, value: float, known: Mapping[str, Any]) -> float:
    """FLOP/s that a metric stands for, at least; 0 of any other metric."""
    metric = flop_metric(name)
    if metric is not None and metric.stem in _RATES:
        return value
    if metric is None or metric.stem != MFU:
        return 0.0
    device = DEVICES.get(str(known.get("device")))
    peaks = [(device or it).flops["float16"] for it in DEVICES.values()]
    return value * min(peaks)
