"""Programs that users have on their machines: sites and campaigns name their paths."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from scalesweep.core.errors import UserError


class Programs(dict[str, str]):
    """Paths by name. ``unknown``: what to do about those that runs need and that have none; to ask
    for one of these raises it as a UserError."""

    def __init__(self, paths: Mapping[str, str], unknown: Mapping[str, str]) -> None:
        """Paths, and a line for each program without one."""
        super().__init__(paths)
        self.unknown = dict(unknown)

    def __missing__(self, name: str) -> str:
        """Raise the UserError of a program without a path."""
        raise UserError(self.unknown[name])


def named_programs(programs: Mapping[str, str]) -> dict[str, str]:
    """Paths made absolute; a word without a slash is left for the shell to find."""
    return {
        name: str(Path(path).expanduser().absolute()) if "/" in path else path
        for name, path in programs.items()
    }


def missing(name: str, path: str, here: bool, has_prologue: bool) -> str | None:
    """Why a program can hardly be started, on this machine if ``here``, else on a cluster's nodes;
    None if it can, or if only the nodes, or a prologue that extends the search path, could tell."""
    if "/" not in path:
        there = not here or has_prologue or shutil.which(path) is not None
        return None if there else f"programs.{name}: {path!r}: not found in PATH here"
    # A path whose folder is not here may be the nodes' own.
    there = Path(path).exists() or not (here or Path(path).parent.is_dir())
    return None if there else f"programs.{name}: {path!r}: no such file here"
