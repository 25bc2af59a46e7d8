"""Programs that a campaign starts, and that are not where they would be started."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.core.profilers import EXECUTABLES, NONE
from scalesweep.state.programs import folders_of, launcher_words
from scalesweep.state.stock import lacks_framework


def missing_programs(
    campaign: Campaign,
    benchmark: Benchmark,
    point: Mapping[str, Any],
    here: bool,
    profile: str = NONE,
) -> dict[str, str]:
    """What is missing to start a run of a point, by program, in words; empty where nothing is.

    ``profile``: the kind of profile that the run is to leave.
    ``here``: runs start on this machine, else on a cluster's nodes, of which less is known.
    """
    site, missing = campaign.site, dict(campaign.pathless)
    if missing:
        return missing
    if (why := lacks_framework(site, benchmark)) is not None:
        return {f"framework {benchmark.framework}": why}
    launcher = launcher_words(site, point, benchmark.framework, benchmark.launch)
    program = next(iter(launcher), site.python_for(benchmark.framework))
    if here and not site.prologue:
        file, of_image = f"{benchmark.folder}/benchmark.yaml", f"{site.file}: container"
        elsewhere = "; name another site (--config site=NAME; of scalesweep: --site NAME)"
        of_site = f"site {site.name}: launch", elsewhere
        needed = {program: (file, "") if benchmark.launch else of_site}
        needed |= dict.fromkeys(site.container[:1], (of_image, ""))
        without = "; install it, or leave out the profile (--config profile=none)"
        needed |= dict.fromkeys(EXECUTABLES.get(profile, ()), (f"profile {profile}", without))
        for name, (where, mend) in needed.items():
            if shutil.which(name) is None:
                missing[name] = f"{where}: {name!r} is not on this machine{mend}"
        # Else a name that the container's program resolves: docker://pytorch/pytorch.
        path = site.image
        if (path.startswith("/") or path.endswith(".sif")) and not Path("/", path).exists():
            missing[path] = f"{of_image}: no image {path!r} on this machine (an absolute path)"
    for word in benchmark.command.fill(point, folders_of(benchmark)):
        if word.startswith(f"{benchmark.folder}/") and not Path(word).exists():
            missing[word] = f"{benchmark.folder}/benchmark.yaml: command: no file {word}"
    for name in sorted(benchmark.command.programs([point])):
        path = campaign.programs[name]
        if why := missing_program(name, path, here, bool(site.prologue)):
            missing[name] = f"{benchmark.name}: {why}"
    return missing


def missing_program(name: str, path: str, here: bool, has_prologue: bool) -> str | None:
    """Why a program can hardly be started, on this machine if ``here``, else on a cluster's nodes;
    None if it can, or if only the nodes, or a prologue that extends the search path, could tell."""
    if "/" not in path:
        there = not here or has_prologue or shutil.which(path) is not None
        return None if there else f"programs.{name}: {path!r}: not found in PATH here"
    # A path whose folder is not here may be the nodes' own.
    there = Path(path).exists() or not (here or Path(path).parent.is_dir())
    return None if there else f"programs.{name}: {path!r}: no such file here"
