"""Make a new study: a folder with a campaign, a site and a benchmark that run at once."""

import argparse
import shlex
import shutil
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.paths import PROFILES, RESOURCES

SKELETON = RESOURCES / "study"


def write_rules(folder: Path) -> None:
    """Write what makes ``snakemake`` and ``snakemake --profile slurm`` work in a study."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SKELETON / "Snakefile", folder)
    shutil.copytree(PROFILES, folder / "profiles", dirs_exist_ok=True)
    link = folder / "slurm"  # where --profile slurm is looked for
    if not link.is_symlink():
        link.symlink_to("profiles/slurm")


def check_new(folder: Path) -> None:
    """Raise UserError if the folder has files, or is none."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        why = "the folder is not empty" if folder.is_dir() else "is not a folder"
        raise UserError(f"{folder}: {why}; name a new one")


def run(args: argparse.Namespace) -> None:
    """Write the study, and say how to run it."""
    folder = Path(args.folder).expanduser().absolute()
    check_new(folder)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SKELETON, folder, dirs_exist_ok=True, ignore=ignore)
    write_rules(folder)
    print(f"study: {folder} (its README.md says what is where)")
    print(f"run it: cd {shlex.quote(str(folder))} && snakemake")
