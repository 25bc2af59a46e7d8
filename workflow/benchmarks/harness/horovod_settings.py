"""What Horovod exchanges, and the settings that it runs with, for the record. No TensorFlow."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

# Bytes of a value of a gradient, by how Horovod compresses it: variables are float32.
_BYTES = {"none": 4, "fp16": 2}

# Of 0.21.0 and later (https://github.com/horovod/horovod/pull/2468): name in the record, variable,
# default and unit.
_SETTINGS = (
    ("bucket_bytes", "HOROVOD_FUSION_THRESHOLD", 128 * 1024 * 1024, 1),
    ("cycle_s", "HOROVOD_CYCLE_TIME", 1.0, 1e-3),
    ("cache_capacity", "HOROVOD_CACHE_CAPACITY", 1024, 1),
)


def exchanged(variables: Iterable[Any], compression: str, ranks: int) -> dict[str, Any] | None:
    """Return what Horovod reduces in a step: ``tensor_bytes``, a tensor for each variable.

    None where there is nothing to exchange. `variables` have a shape.
    """
    if ranks < 2:
        return None
    sizes = [_BYTES[compression] * math.prod(map(int, each.shape)) for each in variables]
    return {"by": "horovod", "tensor_bytes": sizes}


def effective_settings(environ: Mapping[str, str], version: str | None) -> dict[str, Any]:
    """Return fusion threshold (bytes), cycle time (s) and cache capacity, and where each is from.

    ``from`` says ``variable``, ``default`` or, of what autotuning changes while a program runs,
    ``autotune``. A value that is not known (autotuned, of an unknown version, no number) is None.
    """
    tuned = environ.get("HOROVOD_AUTOTUNE", "0").strip().lower() not in ("", "0", "false")
    settings: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, variable, default, unit in _SETTINGS:
        text = environ.get(variable)
        value = (default if version else None) if text is None else _number(text)
        settings[name] = None if value is None else value * unit
        origins[name] = "default" if text is None else "variable"
        if tuned and name != "cache_capacity":
            settings[name], origins[name] = None, "autotune"
    return settings | {"from": origins}


def _number(text: str) -> float | int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
