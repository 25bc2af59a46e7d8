"""Run, plan or report on a campaign: prints the line that calls Snakemake, and becomes it."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from scalesweep.config.study import find_campaign, is_file
from scalesweep.core.errors import UserError
from scalesweep.core.paths import PROFILES, SNAKEFILE
from scalesweep.smk.report_command import setting

SLURM = "slurm"  # the name of the profile
# Where Snakemake looks for a Snakefile.
_SNAKEFILES = ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")

# Options of Snakemake of which the last one counts, with all their names.
_ONCE = {
    "--config": ("--config", "-C"),
    "--configfile": ("--configfile", "--configfiles"),
    "--profile": ("--profile",),
}


def run(args: argparse.Namespace) -> None:
    """Call Snakemake in this process's place, once the Slurm jobs of earlier calls are over."""
    words = words_of(args)
    if args.command == "run" and Path(args.profile or "").name == SLURM and not args.dry_run:
        from scalesweep.slurm.earlier import await_jobs  # here, as a plan needs none of it
        from scalesweep.smk.campaign_args import open_campaign

        await_jobs(open_campaign(args, write=False).runs_folder)
    print(f"+ {shlex.join(words)}", file=sys.stderr, flush=True)
    os.execv(sys.executable, [sys.executable, "-m", *words])


def words_of(args: argparse.Namespace) -> list[str]:
    """The call of Snakemake in the working folder. Raises UserError for an unknown campaign."""
    words = ["snakemake", *_snakefile(Path.cwd())]
    if args.command != "run":
        words.append(args.command)
    if profile := getattr(args, "profile", None):
        words += ["--profile", _profile(profile)]
    if getattr(args, "dry_run", False):
        words.append("-n")
    own = len(words)
    words += args.snakemake
    names = ("site", "results", "history", "baseline")
    settings = {name: getattr(args, name, None) for name in names}
    settings["profile"] = args.profiler
    if args.command == "run":
        settings |= {
            "try": "shapes" if args.try_shapes else None,
            "retry": "unsupported" if args.retry_unsupported else None,
        }
    if args.campaign and is_file(args.campaign):
        words += ["--configfile", args.campaign]
    elif args.campaign:
        find_campaign(args.campaign)
        settings = {"campaign": args.campaign, **settings}
    if given := [setting(key, value) for key, value in settings.items() if value is not None]:
        words += ["--config", *given]
    after = own + len(args.snakemake)
    _check_rest(args, [*words[:own], *words[after:]])
    return words


def _check_rest(args: argparse.Namespace, words: Sequence[str]) -> None:
    """Raise UserError for an option after ``--`` that is among ``words``: Snakemake would read the
    last one, and drop the other without a word."""
    for word in args.snakemake:
        name = "-C" if word.startswith("-C") else word.partition("=")[0]
        for option, same in _ONCE.items():
            if name in same and option in words:
                raise UserError(
                    f"scalesweep {args.command}: {name} after `--`: Snakemake would read only one "
                    f"of two {option}; name either what is before `--`, or what is after it"
                )


def _snakefile(here: Path) -> list[str]:
    """``-s SNAKEFILE``, unless Snakemake finds it here, or a study's that uses it."""
    if any(_uses_ours(here / name) for name in _SNAKEFILES):
        return []
    return ["-s", str(SNAKEFILE)]


def _uses_ours(snakefile: Path) -> bool:
    text = snakefile.read_text(errors="replace") if snakefile.is_file() else ""
    return "scalesweep" in text or str(SNAKEFILE) in text


def _profile(name: str) -> str:
    """A shipped profile by its path, where the working folder has none of its name."""
    shipped = PROFILES / name
    return str(shipped) if not Path(name).exists() and shipped.is_dir() else name
