"""The settings that Horovod runs with: those of its variables, else the defaults of its version."""

import re
from collections.abc import Mapping
from typing import Any

_MB = 1024 * 1024
# Since 0.21.0 (https://github.com/horovod/horovod/pull/2468); before, 64 MB and 5 ms.
_DEFAULTS_CHANGED = (0, 21)
# operations.cc, BackgroundThreadLoop; response_cache.
_CACHE_CAPACITY = 1024


def effective_settings(environ: Mapping[str, str], version: str | None) -> dict[str, Any]:
    """Return fusion threshold (bytes), cycle time (s) and cache capacity, and where each is from.

    ``from`` says ``variable``, ``default`` or, of what autotuning changes while a program runs,
    ``autotune``. A value that is not known (autotuned, of an unknown version, no number) is None.
    """
    fusion: float | None = None
    cycle: float | None = None
    release = re.match(r"(\d+)\.(\d+)", version or "")
    if release:
        late = (int(release[1]), int(release[2])) >= _DEFAULTS_CHANGED
        fusion, cycle = (128 * _MB, 1.0) if late else (64 * _MB, 5.0)
    tuned = environ.get("HOROVOD_AUTOTUNE", "0").strip().lower() not in ("", "0", "false")
    settings: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, variable, default in (
        ("bucket_bytes", "HOROVOD_FUSION_THRESHOLD", fusion),
        ("cycle_s", "HOROVOD_CYCLE_TIME", cycle),
        ("cache_capacity", "HOROVOD_CACHE_CAPACITY", _CACHE_CAPACITY if release else None),
    ):
        text = environ.get(variable)
        settings[name] = default if text is None else _number(text)
        origins[name] = "default" if text is None else "variable"
        if tuned and name != "cache_capacity":
            settings[name], origins[name] = None, "autotune"
    if settings["cycle_s"] is not None:
        settings["cycle_s"] /= 1e3
    return settings | {"from": origins}


def _number(text: str) -> float | int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
