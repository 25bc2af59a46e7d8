"""What ranks exchange in a step of training, for the record. No TensorFlow."""

import math
from collections.abc import Iterable
from typing import Any

# Bytes of a value of a gradient, by how Horovod compresses it: variables are float32.
_BYTES = {"none": 4, "fp16": 2}


def by_horovod(variables: Iterable[Any], compression: str, ranks: int) -> dict[str, Any] | None:
    """Return what Horovod reduces in a step: ``tensor_bytes``, a tensor for each variable.

    None where there is nothing to exchange. `variables` have a shape.
    """
    if ranks < 2:
        return None
    size = _BYTES[compression]
    return {
        "by": "horovod",
        "tensor_bytes": [size * math.prod(map(int, variable.shape)) for variable in variables],
    }
