"""Make a new study: a folder with a campaign, a site and a benchmark that run at once."""

import argparse
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.paths import PROFILES, RESOURCES
from scalesweep.smk.campaign_args import check_path

SKELETON = RESOURCES / "study"


def write_study(folder: Path) -> None:
    """Write a new study into ``folder``; raises UserError or OSError if it cannot be written."""
    check_new(folder)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SKELETON, folder, dirs_exist_ok=True, ignore=ignore)
    write_rules(folder)


def write_rules(folder: Path) -> None:
    """Write what makes ``snakemake`` and ``snakemake --profile slurm`` work in a study."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SKELETON / "Snakefile", folder)
    shutil.copytree(PROFILES, folder / "profiles", dirs_exist_ok=True)
    link = folder / "slurm"  # where --profile slurm is looked for
    if not link.is_symlink():
        link.symlink_to("profiles/slurm")


def as_yaml(content: Mapping[str, Any]) -> str:
    """The text of a file of a study."""
    return yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the files of a study, by their paths in it, and what makes it run."""
    write_rules(folder)
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / path, text)


def check_new(folder: Path) -> None:
    """Raise UserError if the folder has files, or is none."""
    if folder.is_dir():
        if any(folder.iterdir()):
            raise UserError(f"{folder}: the folder is not empty; name a new one")
    elif folder.exists() or folder.is_symlink():
        raise UserError(f"{folder}: is not a folder; name a new one")


def run(args: argparse.Namespace) -> None:
    """Write the study, and say how to run it."""
    folder = Path(args.folder).expanduser().absolute()
    check_path("FOLDER", folder)
    if args.script:
        for number in (signal.SIGTERM, signal.SIGHUP):  # a trial ends with this command
            signal.signal(number, signal.default_int_handler)
        write_study_of(Path(args.script).expanduser().absolute(), folder, args.python, args.words)
    elif args.words or args.python:
        raise UserError("scalesweep study: --python and words after `--` need --from SCRIPT")
    else:
        write_study(folder)
        print(f"study: {folder} (its README.md says what is where)")
    print(f"run it: cd {shlex.quote(str(folder))} && snakemake")


def write_study_of(script: Path, folder: Path, python: str, arguments: Sequence[str]) -> None:
    """Write a study of a script, and say what was seen of it, and what was not."""
    from scalesweep.commands.study_from import files_of, look_at, python_of, try_it

    check_new(folder)
    seen = look_at(script, arguments)
    python = str(Path(python).absolute()) if "/" in python else python or python_of(seen)
    print(f"trying {script.name} on one rank with {python}", flush=True)
    try_it(seen, python, arguments)
    files = files_of(seen, python, arguments)
    write_files(folder, {path: as_yaml(content) for path, content in files.items()})
    for source in (SKELETON / ".gitignore", RESOURCES / "spans" / "scalesweep_spans.py"):
        shutil.copy(source, folder)
    for name, spec in seen.parameters.items():
        print(f"parameter {name}: default {spec['default']}")
    for metric in seen.metrics:
        print(f"metric {metric['metric']} ({metric['unit']}): {metric['pattern']}")
    for line in seen.missing:
        print(f"not seen: {line}")
    print(f"study: {folder}; look at benchmarks/{seen.name}/benchmark.yaml first")
