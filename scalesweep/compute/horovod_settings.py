"""The settings of Horovod that an external program was started with, as far as they show.

They show in the environment, in words of the command (``mpirun -x NAME=VALUE``, ``srun
--export=NAME=VALUE``, ``env NAME=VALUE``) and in options of horovodrun. Standard library only, for
the launcher.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

VARIABLE, LAUNCHER, AUTOTUNE = "variable", "launcher", "autotune"
# Name in the record -> variable, horovodrun's option, and what one of the option is.
_SETTINGS = {
    "bucket_bytes": ("HOROVOD_FUSION_THRESHOLD", "--fusion-threshold-mb", 1 << 20),
    "cycle_s": ("HOROVOD_CYCLE_TIME", "--cycle-time-ms", 1),
    "cache_capacity": ("HOROVOD_CACHE_CAPACITY", "--cache-capacity", 1),
}
_TUNED, _TUNE = ("bucket_bytes", "cycle_s"), "HOROVOD_AUTOTUNE"
_SET = re.compile(r"(?:^|[=,])(HOROVOD_[A-Z_]+)=([^,]*)")


def visible_settings(
    command: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any] | None:
    """``notes.exchange`` of an external program; None where nothing shows that it uses Horovod.

    ``command`` with its launcher, the ``environment`` that this was started in. A value of which
    nothing is known is None, and so is where it is from.
    """
    options = _options(command)
    variables = {name: value for name, value in environment.items() if name.startswith("HOROVOD_")}
    for word in command:
        variables |= dict(_SET.findall(word))
    telling = {_TUNE, *(variable for variable, _, _ in _SETTINGS.values())}
    if options is None and not variables.keys() & telling:
        return None
    own = options or {}
    tuned = variables.get(_TUNE, "0").strip().lower() not in ("", "0", "false")
    tuned = "--autotune" in own or (tuned and "--no-autotune" not in own)
    settings: dict[str, Any] = dict.fromkeys(_SETTINGS)
    origins: dict[str, str | None] = dict.fromkeys(_SETTINGS)
    for name, (variable, option, unit) in _SETTINGS.items():
        if tuned and name in _TUNED:
            origins[name] = AUTOTUNE
        elif option in own:
            settings[name], origins[name] = _number(own[option], unit), LAUNCHER
        elif variable in variables:
            settings[name], origins[name] = _number(variables[variable]), VARIABLE
    if settings["cycle_s"] is not None:
        settings["cycle_s"] /= 1e3
    return {"by": "horovod", "backend": None, **settings, "from": origins}


def _options(command: Sequence[str]) -> dict[str, str] | None:
    """The options of horovodrun in a command, before the program; None without horovodrun."""
    runners = ("horovodrun", "horovodrun.py")
    place = next((n for n, word in enumerate(command) if Path(word).name in runners), None)
    if place is None:
        return None
    options: dict[str, str] = {}
    open_option = ""
    for word in command[place + 1 :]:
        if word.startswith("-"):
            name, equals, options[name] = word.partition("=")
            open_option = "" if equals else name
        elif open_option:
            options[open_option], open_option = word, ""
        else:
            break  # the program
    return options


def _number(text: str, unit: int = 1) -> float | int | None:
    try:
        value = float(text) * unit
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
