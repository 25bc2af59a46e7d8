"""The settings of Horovod that an external program was started with, as far as they show.

They show in the environment, in words of the command (``mpirun -x NAME=VALUE``, ``srun
--export=NAME=VALUE``, ``env NAME=VALUE``) and in options of horovodrun. Standard library only, for
the launcher.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Name in the record -> variable, horovodrun's option, and what one of the option is.
_SETTINGS = {
    "bucket_bytes": ("HOROVOD_FUSION_THRESHOLD", "--fusion-threshold-mb", 1 << 20),
    "cycle_s": ("HOROVOD_CYCLE_TIME", "--cycle-time-ms", 1),
    "cache_capacity": ("HOROVOD_CACHE_CAPACITY", "--cache-capacity", 1),
}
_TUNED, _TUNE = ("bucket_bytes", "cycle_s"), "HOROVOD_AUTOTUNE"
_SET = re.compile(r"(?:^|[=, ])(HOROVOD_[A-Z_]+)=([^, ]*)")


def visible_settings(
    command: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any] | None:
    """``notes.exchange`` of an external program; None where nothing shows that it uses Horovod.

    ``command`` with its launcher, the ``environment`` that this was started in. A value of which
    nothing is known is None, and so is where it is from.
    """
    words = " ".join(command)
    variables = {**environment, **dict(_SET.findall(words))}
    telling = {_TUNE, *(variable for variable, _, _ in _SETTINGS.values())}
    by_horovodrun = re.search(r"(?:^|[/ ])horovodrun(?:\.py)?(?: |$)", words)
    if not by_horovodrun and variables.keys().isdisjoint(telling):
        return None
    tuned = variables.get(_TUNE, "0").strip().lower() not in ("", "0", "false")
    tuned = " --autotune" in words or (tuned and " --no-autotune" not in words)
    settings: dict[str, Any] = dict.fromkeys(_SETTINGS)
    origins: dict[str, str | None] = dict.fromkeys(_SETTINGS)
    for name, (variable, option, unit) in _SETTINGS.items():
        given = re.search(rf" {option}[= ](\S+)", words) if by_horovodrun else None
        if tuned and name in _TUNED:
            origins[name] = "autotune"
        elif given:
            settings[name], origins[name] = _number(given[1], unit), "launcher"
        elif variable in variables:
            settings[name], origins[name] = _number(variables[variable]), "variable"
    if settings["cycle_s"] is not None:
        settings["cycle_s"] /= 1e3
    return {"by": "horovod", "backend": None, **settings, "from": origins}


def _number(text: str, unit: int = 1) -> float | int | None:
    try:
        value = float(text) * unit
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
