"""TensorFloat-32: whether float32 products are computed with ten bits of mantissa.

TensorFlow allows it by default, for matrix products and convolutions of float32; PyTorch for
convolutions only. NVIDIA's GPUs have it from compute capability 8.0 on (Ampere); whatever else a
framework runs on computes in float32. NVIDIA_TF32_OVERRIDE=0 forbids it to NVIDIA's libraries,
whatever a program says.
"""

import os
from typing import Any

from harness import ranks
from harness.program import EXIT_UNSUPPORTED

CAPABILITY = (8, 0)
OVERRIDE = "NVIDIA_TF32_OVERRIDE"


def choose(asked: bool | None) -> tuple[int, str] | None:
    """Allow or forbid it, None for the framework's default; return what stands against it."""
    if asked is None:
        return None
    ranks.implementation().allow_tf32(asked)
    if not asked or facts()["in_force"]:
        return None
    if os.environ.get(OVERRIDE) == "0":
        return EXIT_UNSUPPORTED, f"tf32 true: {OVERRIDE}=0 forbids it"
    return EXIT_UNSUPPORTED, "tf32 true: no GPU of compute capability 8.0 or more here"


def facts(convolutions: bool = False) -> dict[str, Any]:
    """Return what this rank computes on, whether that has TF32, and whether it is in force for
    convolutions, or else for matrix products."""
    allowed, gpus = ranks.implementation().tf32_state(convolutions)
    supported = bool(gpus) and all(gpu is not None and tuple(gpu) >= CAPABILITY for gpu in gpus)
    override = os.environ.get(OVERRIDE)
    return {
        "device": "GPU" if gpus else "CPU",
        "allowed": allowed,
        "override": override,
        "supported": supported,
        "in_force": allowed and supported and override != "0",
    }


def of_ranks(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what all ranks say; None where they differ."""
    return {
        name: value if all(rank[name] == value for rank in ranks) else None
        for name, value in ranks[0].items()
    }
