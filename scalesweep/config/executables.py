"""Programs that users have on their machines: sites and campaigns name their paths."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


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
        is_here = Path(path).exists()
    else:
        is_here = has_prologue or shutil.which(path) is not None
    if is_here:
        return None
    where = "no such file" if _is_path(path) else "a name without a slash, not found in PATH"
    return f"programs.{name}: {path!r}: {where} on this machine"


def mistyped(name: str, path: str) -> str | None:
    """Why a program can hardly be on a cluster's nodes: its folder is here, and it is not in it.

    A path whose folder is not here may be the nodes' own, and a name is looked for there: None.
    """
    if not _is_path(path) or Path(path).exists() or not Path(path).parent.is_dir():
        return None
    return f"programs.{name}: {path!r}: no such file in a folder that is on this machine"
