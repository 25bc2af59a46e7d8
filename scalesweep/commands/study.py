"""Make a new study: a folder with a campaign, a site and a benchmark that run at once."""

import argparse
import shlex
import shutil
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.paths import REPO, RESOURCES
from scalesweep.smk.campaign_args import check_path

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


def run(args: argparse.Namespace) -> None:
    """Write the study, and say how to run it."""
    folder = Path(args.folder).expanduser().absolute()
    check_path("FOLDER", folder)
    write_study(folder)
    print(f"study: {folder} (its README.md says what is where)")
    words = ["snakemake", "-s", f"{REPO}/Snakefile", "--directory", str(folder)]
    print(f"run it: {shlex.join(words)}")
