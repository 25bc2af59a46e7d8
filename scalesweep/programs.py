"""Programs that users have on their machines: sites and campaigns name their paths."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scalesweep.errors import UserError
from scalesweep.site import Site

if TYPE_CHECKING:
    from scalesweep.campaign import Experiment


def named_programs(programs: Mapping[str, str]) -> dict[str, str]:
    """Paths made absolute; a word without a slash is left for the shell to find."""
    return {
        name: str(Path(path).expanduser().absolute()) if _is_path(path) else path
        for name, path in programs.items()
    }


def _is_path(program: str) -> bool:
    return "/" in program or program.startswith("~")


def check_programs(
    experiments: Sequence["Experiment"], site: Site, programs: Mapping[str, str], path: Path
) -> None:
    """Raise UserError naming the first program that a benchmark starts and nobody names."""
    if site.launch is None:
        return
    for experiment in experiments:
        benchmark = experiment.benchmark
        missing = sorted(benchmark.command.programs(experiment.points) - programs.keys())
        if missing:
            raise UserError(
                f"{path}: experiments.{experiment.name}: benchmark {benchmark.name} starts the "
                f"program '{missing[0]}', whose path is not known; add to "
                f"config/sites/{site.name}.yaml, or to this file, "
                f"'programs: {{{missing[0]}: /path}}'"
            )


def not_here(name: str, path: str, has_prologue: bool) -> str | None:
    """Why a program cannot be started on this machine; None if it can, or if only a prologue,
    which may extend the search path, could tell."""
    if _is_path(path):
        found = Path(path).exists()
    else:
        found = has_prologue or shutil.which(path) is not None
    if found:
        return None
    where = "there is no such file" if _is_path(path) else "it is not in PATH (a path has a slash)"
    return f"programs.{name}: {path!r}: {where} on this machine"
