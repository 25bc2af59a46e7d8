"""Keys of campaign and site files under the names that they had once: read, with a line."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError

# Always in GiB, whatever they were called.
RENAMED = {
    "memory_gb_per_node": "memory_gib_per_node",
    "memory_gb_per_rank": "memory_gib_per_rank",
    "memory_gb": "memory_gib",
}

_log = logging.getLogger(__name__)
_warned: set[tuple[Path, str]] = set()


def rename_keys(content: Any, path: Path) -> None:
    """Give old keys of a file's content, checked or not, their names of today, in place.

    Logs a line for each, once in a process. Raises UserError where both names are given.
    """
    for where, mapping in _mappings(content, ""):
        for old in RENAMED.keys() & mapping.keys():
            new = RENAMED[old]
            if new in mapping:
                raise UserError(f"{path}: {where}{old}: the same as {new}; leave out {old}")
            mapping[new] = mapping.pop(old)
            if (path, where + old) not in _warned:
                _warned.add((path, where + old))
                _log.warning("%s: %s%s is now %s (GiB, as before)", path, where, old, new)


def _mappings(content: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The mappings of a file that may have such keys, each with the start of their names."""
    if not isinstance(content, dict):
        return
    yield where, content
    for name in ("slurm", "staging", "experiments"):
        part = content.get(name)
        if name == "experiments" and isinstance(part, dict):
            for experiment, spec in part.items():
                if isinstance(spec, dict):
                    yield f"{where}experiments.{experiment}.", spec
        elif isinstance(part, dict):
            yield from _mappings(part, f"{where}{name}.")
