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
        name: str(Path(path).expanduser().absolute()) if _is_path(path) else path
        for name, path in programs.items()
    }


def _is_path(program: str) -> bool:
    return "/" in program or program.startswith("~")


def not_here(name: str, path: str, has_prologue: bool) -> str | None:
    """Why a program cannot be started on this machine; None if it can, or if only a prologue,
    which may extend the search path, could tell."""
    if _is_path(path):
        return None if Path(path).exists() else f"programs.{name}: {path!r}: no such file here"
    if has_prologue or shutil.which(path):
        return None
    return f"programs.{name}: {path!r}: a name without a slash, not found in PATH here"


def mistyped(name: str, path: str) -> str | None:
    """Why a program can hardly be on a cluster's nodes: its folder is here, and it is not in it.

    A path whose folder is not here may be the nodes' own, and a name is looked for there: None.
    """
    if not _is_path(path) or Path(path).exists() or not Path(path).parent.is_dir():
        return None
    return f"programs.{name}: {path!r}: no such file in a folder that is on this machine"
