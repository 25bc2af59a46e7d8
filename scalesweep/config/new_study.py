"""A new study: a folder with a campaign, a site and a benchmark that run at once."""

import shlex
import shutil
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.paths import REPO, RESOURCES

SKELETON = RESOURCES / "study"
# In the texts of the skeleton: where this repository is.
_CLONE = "CLONE"


def write_study(folder: Path) -> None:
    """Write a new study into ``folder``.

    Raises UserError if the folder has files, or is none; OSError if it cannot be written.
    """
    if folder.is_dir():
        if any(folder.iterdir()):
            raise UserError(f"{folder}: the folder is not empty; name a new one")
    elif folder.exists() or folder.is_symlink():
        raise UserError(f"{folder}: is not a folder; name a new one")
    shutil.copytree(
        SKELETON, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in folder.rglob("*"):
        if path.suffix in (".md", ".yaml"):
            path.write_text(path.read_text().replace(_CLONE, shlex.quote(str(REPO))))
