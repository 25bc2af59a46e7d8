"""Make a new study: a folder with a campaign, a site and a benchmark that run at once."""

import argparse
import shlex
from pathlib import Path

from scalesweep.config.new_study import write_study
from scalesweep.core.paths import REPO
from scalesweep.smk.campaign_args import check_path


def run(args: argparse.Namespace) -> None:
    """Write the study, and say how to run it."""
    folder = Path(args.folder).expanduser().absolute()
    check_path("FOLDER", folder)
    write_study(folder)
    print(f"study: {folder} (its README.md says what is where)")
    words = ["snakemake", "-s", f"{REPO}/Snakefile", "--directory", str(folder)]
    print(f"run it: {shlex.join(words)}")
