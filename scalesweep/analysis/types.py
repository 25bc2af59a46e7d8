"""Types of arrays, and the arrays of a run, from the content of its .npz file."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Arrays = Mapping[str, NDArray[Any]]


def open_arrays(content: bytes) -> Arrays:
    """All its arrays by name; raises ``core.record.NOT_ARRAYS``."""
    with np.load(io.BytesIO(content)) as arrays:
        return {name: arrays[name] for name in arrays}
