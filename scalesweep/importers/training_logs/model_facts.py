"""What logs state of the model: parameters of a point, and the transformer that these declare.

What a log does not state is unknown: no name of a model stands for its size.
"""

import math
from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.device_peaks import DRIVER_NAMES
from scalesweep.importers.training_logs.printed_number import number_of

MIXTURE = "mixture of experts"
# As of ``parameter_entry``, without null.
MODEL: Mapping[str, tuple[str, str, str | None, bool]] = {
    "family": ("string", "What the model is, where it is no dense decoder.", None, True),
    "layers": ("integer", "Blocks of the model.", "layers", True),
    "width": ("integer", "Values of a token between blocks.", "values", True),
    "heads": ("integer", "Heads of the attention.", "heads", True),
    "kv_heads": ("integer", "Heads of keys and values.", "heads", True),
    "ffn_width": ("integer", "Width of the layers between two attentions.", "values", True),
    "gated": ("boolean", "Whether these layers have a gate.", None, True),
    "vocabulary": ("integer", "Tokens that the model knows, padded.", "tokens", True),
    "tied": ("boolean", "Whether the last layer has the first one's weights.", None, True),
    "learned_positions": ("boolean", "Whether positions have learned vectors.", None, True),
    "recompute": ("string", "What the backward pass computes again.", None, False),
    "quantization": ("string", "Narrower numbers in some products.", None, False),
    "device": ("string", "The device, by its data sheet (device_peaks.py).", None, False),
}
# Facts that describe the model and nothing else: a run is known by its lines and its other facts.
# Where two lines differ in one of these (a model of several parts), it is not known.
DESCRIBING = frozenset(MODEL) | {
    *("activations", "biases", "built", "counted_parameters", "experts", "fp4", "fp8", "gpu_shown"),
    *("grouped", "head_width", "latent", "most_positions", "mtp", "norm", "positions"),
    *("precision_shown", "qk_norm", "qkv_biases", "query_groups", "rank_parameters", "recomputed"),
    *("quantized", "sparse", "untied"),
    # Read since later versions; what was imported before stays the same run.
    *("devices", "nodes", "planned", "samples_at_start"),
}
_16_BIT = {
    "bfloat16": ["bfloat16", "bf16", "bf16-true", "bf16-mixed"],
    "float16": ["float16", "fp16", "16-true", "16-mixed"],
}
_DTYPE = " else ".join(
    [
        "'float8' if quantization == 'float8'",
        "null if quantization is not null",
        # float32 may be tf32 on the device: no log says it.
        *(f"'{dtype}' if precision in {names}" for dtype, names in _16_BIT.items()),
        "null",
    ]
)
TRANSFORMER: Mapping[str, str] = {
    "when": "family is null",
    "parameters": "model_parameters",
    **{name: name for name in ("layers", "width", "heads", "kv_heads")},
    # How many matrices have this width, and how wide keys are, must be known with it.
    "ffn_width": "ffn_width if gated is not null and kv_heads is not null else null",
    "gated": "gated",
    "sequence": "sequence_length",
    **{name: name for name in ("vocabulary", "tied", "learned_positions", "recompute")},
    "micro_batch": "micro_batch_size",
    "dtype": _DTYPE,
    "device": "device",
}
_FLAGS = {"true": True, "false": False}


def flag(text: str | None) -> bool | None:
    """Whether a printed ``True`` or ``false`` is true; None for anything else."""
    return _FLAGS.get((text or "").lower())


def count(text: str | None) -> int | None:
    """The whole number that a text is, with K, M, G or `` billion`` behind it; None for others."""
    number, _, word = (text or "").partition(" ")
    value = number_of(number) * {"": 1.0, "billion": 1e9, "million": 1e6}.get(word, math.nan)
    return round(value) if 0 < value < 1e18 else None


def stated(**values: Any) -> dict[str, Any]:
    """The values that are known."""
    return {name: value for name, value in values.items() if value is not None}


def mixture(experts: str | None) -> str | None:
    """The family of a model of so many experts: None of one, or where it is not stated."""
    return MIXTURE if (count(experts) or 0) > 1 else None


def device_of(gpu: Any) -> dict[str, Any]:
    """The device, where a driver's name is that of one alone."""
    return stated(device=DRIVER_NAMES.get(str(gpu)))
