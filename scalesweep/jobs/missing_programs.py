"""Programs that a campaign starts, and that are not where they would be started."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.executables import missing as missing_program
from scalesweep.config.site_keys import image_of
from scalesweep.core.profilers import EXECUTABLES, NONE
from scalesweep.state.frameworks import lacks_framework
from scalesweep.state.programs import container_words, launcher_of, python_of


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
    site, missing = campaign.site, dict(campaign.programs.unknown)
    if missing:
        return missing
    if (why := lacks_framework(site, benchmark)) is not None:
        return {f"framework {benchmark.framework}": why}
    python = python_of(campaign, benchmark)
    program = next(iter(launcher_of(campaign, benchmark, point)), python)
    if here and not site.prologue and shutil.which(program) is None:
        own = benchmark.launch or benchmark.python
        missing[program] = (
            f"{benchmark.folder}/benchmark.yaml: starts runs with {program!r}, which is not on "
            "this machine"
            if own
            else f"site {site.name} starts runs with {program!r}, which is not on this "
            "machine; name another site (--config site=NAME; of scalesweep: --site NAME)"
        )
    if here and not site.prologue:
        missing |= _missing_container(campaign, benchmark)
    for name in EXECUTABLES.get(profile, ()) if here and not site.prologue else ():
        if shutil.which(name) is None:
            missing[name] = (
                f"profile {profile}: {name!r} is not on this machine; install it, put it on the "
                "PATH, or leave out the profile (--config profile=none)"
            )
    for name in sorted(benchmark.command.programs([point])):
        path = campaign.programs[name]
        if why := missing_program(name, path, here, bool(site.prologue)):
            missing[name] = f"{benchmark.name}: {why}"
    return missing


def _missing_container(campaign: Campaign, benchmark: Benchmark) -> dict[str, str]:
    """What is not on this machine of what starts a benchmark's container: program and image."""
    words = container_words(campaign, benchmark)
    where = f"{benchmark.folder}/benchmark.yaml" if benchmark.container else campaign.site.file
    missing = {
        word: f"{where}: container: {word!r} is not on this machine"
        for word in words[:1]
        if shutil.which(word) is None
    }
    image = image_of(words)
    # Else a name that the container's program resolves: docker://pytorch/pytorch.
    if (image.startswith("/") or image.endswith(".sif")) and not Path(image).exists():
        missing[image] = f"{where}: container: no image {image!r} on this machine"
    return missing
