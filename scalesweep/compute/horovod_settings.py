"""The settings of Horovod that an external program was started with, as far as they show.

They show in the environment, in words of the command (``mpirun -x NAME=VALUE``, ``srun
--export=NAME=VALUE``, ``env NAME=VALUE``) and in options of horovodrun, which turns these into
variables (horovod/runner/launch.py, common/util/config_parser.py). What none of them sets is a
default of Horovod's version: known only where horovodrun belongs to an installation whose version
can be read, and nothing else could have set it (a shell prologue, a file of settings).

Standard library only, for the launcher.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RUNNER = "horovodrun"
VARIABLE, LAUNCHER, DEFAULT, AUTOTUNE = "variable", "launcher", "default", "autotune"
_MB = 1024 * 1024
# Name in the record -> variable, horovodrun's option, and what one of the option is.
_SETTINGS = {
    "bucket_bytes": ("HOROVOD_FUSION_THRESHOLD", "--fusion-threshold-mb", _MB),
    "cycle_s": ("HOROVOD_CYCLE_TIME", "--cycle-time-ms", 1),
    "cache_capacity": ("HOROVOD_CACHE_CAPACITY", "--cache-capacity", 1),
}
_TUNED = ("bucket_bytes", "cycle_s")
_TUNE = "HOROVOD_AUTOTUNE"
# As for native programs (workflow/benchmarks/harness/horovod_settings.py).
_DEFAULTS_CHANGED = (0, 21)
_CACHE_CAPACITY = 1024
# Options of horovodrun without a value; every other one that begins with a dash has one.
_FLAGS = frozenset(
    (
        *("--disable-cache", "--verbose", "--gloo", "--mpi", "--jsrun", "--tcp"),
        *("--hierarchical-allreduce", "--no-hierarchical-allreduce", "--torus-allreduce"),
        *("--hierarchical-allgather", "--no-hierarchical-allgather", "--no-torus-allreduce"),
        *("--autotune", "--no-autotune", "--timeline-mark-cycles", "--no-timeline-mark-cycles"),
        *("--no-stall-check", "--stall-check", "--mpi-threads-disable", "--no-mpi-threads-disable"),
        *("--log-with-timestamp", "--log-without-timestamp", "--log-hide-timestamp"),
        *("-prefix-timestamp", "--prefix-output-with-timestamp", "--no-log-hide-timestamp"),
    )
)
_SET = re.compile(r"(?:^|[=,])(HOROVOD_[A-Z_]+)=([^,]*)")


def visible_settings(
    command: Sequence[str], environment: Mapping[str, str], prologue: Sequence[str] = ()
) -> dict[str, Any] | None:
    """``notes.exchange`` of an external program; None where nothing shows that it uses Horovod.

    ``command`` with its launcher, the ``environment`` that this was started in, and the lines of
    shell before it. A value of which nothing is known is None, and so is where it is from.
    """
    options = _options(command)
    variables = {name: value for name, value in environment.items() if name.startswith("HOROVOD_")}
    for word in command:
        variables |= dict(_SET.findall(word))
    if options is None and not variables.keys() & {
        _TUNE,
        *(names[0] for names in _SETTINGS.values()),
    }:
        return None
    own = options or {}
    hidden = bool(prologue) or "--config-file" in own
    version = None if hidden or options is None else _version(command, environment)
    defaults = _defaults(version)
    tuned = _tuned(own, variables)
    settings: dict[str, Any] = {}
    origins: dict[str, str | None] = {}
    for name, (variable, option, unit) in _SETTINGS.items():
        if tuned and name in _TUNED:
            settings[name], origins[name] = None, AUTOTUNE
        elif option in own:
            settings[name], origins[name] = _number(own[option], unit), LAUNCHER
        elif variable in variables and "--config-file" not in own:
            settings[name], origins[name] = _number(variables[variable]), VARIABLE
        else:
            settings[name] = defaults.get(name)
            origins[name] = DEFAULT if name in defaults else None
    if settings["cycle_s"] is not None:
        settings["cycle_s"] /= 1e3
    return {"by": "horovod", "backend": None, **settings, "from": origins}


def _options(command: Sequence[str]) -> dict[str, str] | None:
    """The options of horovodrun in a command, flags as empty text; None without horovodrun."""
    place = _runner(command)
    if place is None:
        return None
    options: dict[str, str] = {}
    words = iter(command[place + 1 :])
    for word in words:
        if not word.startswith("-"):
            break  # the program
        name, equals, value = word.partition("=")
        options[name] = value if equals else "" if name in _FLAGS else next(words, "")
    return options


def _runner(command: Sequence[str]) -> int | None:
    names = (RUNNER, f"{RUNNER}.py")
    return next((n for n, word in enumerate(command) if Path(word).name in names), None)


def _tuned(own: Mapping[str, str], variables: Mapping[str, str]) -> bool:
    """Whether autotuning changes two of the settings while the program runs."""
    if "--autotune" in own or "--no-autotune" in own:
        return "--autotune" in own
    return variables.get(_TUNE, "0").strip().lower() not in ("", "0", "false")


def _version(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Version of the Horovod that horovodrun belongs to, by the folder that it is installed in."""
    place = _runner(command)
    if place is None:
        return None
    path = shutil.which(command[place], path=environment.get("PATH"))
    interpreter = _interpreter(path, command[place - 1] if place else "")
    if interpreter is None:
        return None
    # A virtual environment's python is a link: its packages are next to the link.
    folders = sorted(
        interpreter.parent.parent.glob("lib/python3*/site-packages/horovod-*.dist-info")
    )
    release = re.match(r"horovod-(\d+)\.(\d+)", folders[0].name) if len(folders) == 1 else None
    return (int(release[1]), int(release[2])) if release else None


def _interpreter(path: str | None, before: str) -> Path | None:
    """The Python that runs horovodrun: the word before it, else that of its first line."""
    if re.fullmatch(r"python[\d.]*", Path(before).name) and os.sep in before:
        return Path(before)
    if path is None:
        return None
    try:
        with Path(path).open("rb") as file:
            first = file.readline(512)
    except OSError:
        return None
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []
    return Path(words[0]) if words and os.sep in words[0] and "env" not in words[0] else None


def _defaults(version: tuple[int, int] | None) -> dict[str, float | int]:
    """What Horovod takes if nothing is set: since 0.21 other values (horovod#2468)."""
    if version is None:
        return {}
    late = version >= _DEFAULTS_CHANGED
    return {
        "bucket_bytes": (128 if late else 64) * _MB,
        "cycle_s": 1 if late else 5,  # ms here, as in what sets it
        "cache_capacity": _CACHE_CAPACITY,
    }


def _number(text: str, unit: int = 1) -> float | int | None:
    try:
        value = float(text) * unit
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
