"""Make a new study: a folder with a campaign, a site and a benchmark that run at once."""

import argparse
import shlex
import shutil
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.paths import PROFILES, RESOURCES
from scalesweep.smk.campaign_args import check_path

SKELETON = RESOURCES / "study"


def write_study(folder: Path) -> None:
    """Write a new study into ``folder``.

    Raises UserError if the folder has files, or is none; OSError if it cannot be written.
    """
    if folder.is_dir():
        if any(folder.iterdir()):
            raise UserError(f"{folder}: the folder is not empty; name a new one")
    elif folder.exists() or folder.is_symlink():
        raise UserError(f"{folder}: is not a folder; name a new one")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SKELETON, folder, dirs_exist_ok=True, ignore=ignore)
    shutil.copytree(PROFILES, folder / "profiles")
    (folder / "slurm").symlink_to("profiles/slurm")  # where --profile slurm is looked for


def run(args: argparse.Namespace) -> None:
    """Write the study, and say how to run it."""
    folder = Path(args.folder).expanduser().absolute()
    check_path("FOLDER", folder)
    write_study(folder)
    print(f"study: {folder} (its README.md says what is where)")
    print(f"run it: cd {shlex.quote(str(folder))} && snakemake")
