"""Stamps: hidden files without content, or with a time, by which Snakemake orders its work.

No content is lost with one, so they need no place in the manifest (``own_files``). Whatever else
lies in their folders is a user's, and stays.
"""

import os
import re
from pathlib import Path

from scalesweep.core.files import read_regular
from scalesweep.core.own_files import make_way

_NAME = re.compile(r"(?:[a-z]+-)?[0-9a-f-]+")
_LONGEST = 32  # bytes


def is_stamp(path: Path) -> bool:
    """Whether a file has a name and a content that only a stamp has."""
    if not _NAME.fullmatch(path.name) or path.is_symlink():
        return False
    try:
        content = read_regular(path, _LONGEST).strip()
    except OSError:  # a folder, a pipe, a longer file
        return False
    return not content or content.isdigit()


def make_way_for_stamp(path: Path) -> None:
    """Set aside what lies under the name of a stamp and is none; raises OSError."""
    if _NAME.fullmatch(path.name) and os.path.lexists(path) and not is_stamp(path):
        make_way(path)


def remove_stamp(path: Path) -> None:
    """Remove a stamp, and nothing else that lies under its name; raises OSError."""
    if is_stamp(path):
        path.unlink(missing_ok=True)
