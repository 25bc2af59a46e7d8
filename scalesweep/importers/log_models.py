"""What logs state of a training: parameters of a point, and the transformer that these declare.

What a log does not state is unknown: no name of a model stands for its size.
"""

import math
from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.device_peaks import DEVICES, DRIVER_NAMES
from scalesweep.analysis.flop_conventions import MFU, flop_metric
from scalesweep.compute.log_starts import LogError
from scalesweep.compute.log_values import TOKENS
from scalesweep.core.formatting import number
from scalesweep.importers.imported_run import shown

# What is unknown where it is no number above 0, as of a model without it.
_MODEL = ("layers", "width", "heads", "kv_heads", "ffn_width", "vocabulary")
# What a point has beside its parameters, or other parameters follow from.
_COUNTS = ("ranks", "ranks_per_node", "global_batch_size", "tokens_per_step")
# Conventions differ by a factor of two; a comma or point that is misread makes 1000.
_FACTOR = 10.0
# Attention's share of 6 N is T / (6 d) where blocks have 12 d^2 weights. Without the width of a
# model it is taken to be as narrow as this.
_NARROWEST = 256
_WORDS = 100  # characters of a text


def known_of(facts: Mapping[str, Any], kinds: Mapping[str, str], line: int) -> dict[str, Any]:
    """Parameters of the facts, by their ``kinds``. Raises LogError for a number that cannot be."""
    known: dict[str, Any] = {}
    for name, value in facts.items():
        kind = "integer" if name in _COUNTS else kinds.get(name)
        if kind == "string" or name == "gpu":
            known[name] = shown(str(value))[:_WORDS]
        elif kind == "boolean" and isinstance(value, bool):
            known[name] = value
        elif kind in ("integer", "number") and type(value) in (int, float):
            if not 0 < value < 1e18 and name not in _MODEL:
                raise LogError(f"{name} is {value}", line)
            if 0 < value < 1e18:
                known[name] = round(value) if kind == "integer" else value
    if device := DRIVER_NAMES.get(str(known.get("gpu"))):
        known["device"] = device
    return known


def point_of(known: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of the run: what is of all ranks together, by rank."""
    point = {n: it for n, it in known.items() if n in kinds or n in ("ranks", "ranks_per_node")}
    for name, total in (
        ("batch_per_rank", known.get("global_batch_size")),
        ("tokens_per_rank", known.get("tokens_per_step")),
    ):
        if total and name in kinds:
            each = total / known["ranks"]
            point[name] = int(each) if each == int(each) else each
    return point


def check_layout(known: Mapping[str, Any], line: int) -> None:
    """Raises LogError where the ranks cannot share the model as the log says."""
    axes = [name for name in ("tp", "pp", "cp") if known.get(name)]
    size = math.prod(known[name] for name in axes)
    if known["ranks"] % size:
        raise LogError(f"{known['ranks']} ranks, no multiple of {' x '.join(axes)} = {size}", line)


def check_flops(
    metrics: Mapping[str, Mapping[str, Any]], known: Mapping[str, Any], line: int
) -> None:
    """Raises LogError where the printed FLOP/s, or MFU, of a device are too many for its tokens/s.

    Too few are none: of a mixture of experts a token meets a small part of the parameters.
    """
    each, size = metrics.get(f"{TOKENS}_per_device"), known.get("model_parameters")
    every = metrics.get(TOKENS)
    if size is None or (each is None and every is None):
        return
    rate = each["value"] if each else every["value"] / known["ranks"] if every else 0.0
    length, width = known.get("sequence_length", 0), known.get("width", _NARROWEST)
    needed = 6.0 * size * (1 + length / (6 * width)) * rate
    for name, it in metrics.items():
        if (value := _flops(name, float(it["value"]), known)) > _FACTOR * needed:
            raise LogError(
                f"{name} of {number(float(it['value']), 3)} is {number(value / needed, 2)} times "
                f"what {number(rate, 4)} tokens/s of a device need at most with {size:,} "
                "parameters: was a number printed with other commas and points?",
                line,
            )


def _flops(name: str, value: float, known: Mapping[str, Any]) -> float:
    """FLOP/s that a metric stands for, at least; 0 of any other metric."""
    metric = flop_metric(name)
    if metric is not None and metric.stem in ("model_flop_rate", "flops_per_device"):
        return value
    if metric is None or metric.stem != MFU:
        return 0.0
    device = DEVICES.get(str(known.get("device")))
    return value * min((device or it).flops["float16"] for it in DEVICES.values())
