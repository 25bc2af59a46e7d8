"""How many floating-point operations a call is, and the bytes that it moves. No TensorFlow."""

from collections.abc import Mapping
from typing import Any

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of a value


def flop(params: Mapping[str, Any], size: int) -> int:
    """Return the FLOP of a call on one rank; a multiply-add counts as 2.

    A product of square matrices of `size` rows is 2 n^3. A convolution with same padding is 2 x
    images x outputs x kernel x channels in x channels out; positions where the kernel reaches over
    the edge count in full, as the formulas of layers have it.
    """
    if params["operation"] == "matmul":
        return 2 * size**3
    outputs = params["images"] * params["height"] * params["width"]
    return 2 * outputs * params["kernel"] ** 2 * size**2


def least_bytes(params: Mapping[str, Any], size: int) -> int:
    """Return the least bytes that a call moves: both operands and the result, each once."""
    value = BYTES[params["dtype"]]
    if params["operation"] == "matmul":
        return value * 3 * size**2
    pixels = params["images"] * params["height"] * params["width"]
    return value * (2 * pixels * size + params["kernel"] ** 2 * size**2)
