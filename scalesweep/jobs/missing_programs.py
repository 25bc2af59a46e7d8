"""Programs that a campaign starts, and that are not where they would be started."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.command_template import missing as missing_program
from scalesweep.config.site_keys import image_of
from scalesweep.core.profilers import EXECUTABLES, NONE
from scalesweep.state.programs import container_words, launcher_of, python_of
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
    site, missing = campaign.site, dict(campaign.programs.unknown)
    if missing:
        return missing
    if (why := lacks_framework(site, benchmark)) is not None:
        return {f"framework {benchmark.framework}": why}
    python = python_of(campaign, benchmark)
    program = next(iter(launcher_of(campaign, benchmark, point)), python)
    if here and not site.prologue:
        file, image = f"{benchmark.folder}/benchmark.yaml", container_words(campaign, benchmark)
        of_image = f"{file if benchmark.container else site.file}: container"
        own = benchmark.launch or benchmark.python
        elsewhere = "; name another site (--config site=NAME; of scalesweep: --site NAME)"
        needed = {program: (file, "") if own else (f"site {site.name}: launch", elsewhere)}
        needed |= dict.fromkeys(image[:1], (of_image, ""))
        without = "; install it, or leave out the profile (--config profile=none)"
        needed |= dict.fromkeys(EXECUTABLES.get(profile, ()), (f"profile {profile}", without))
        for name, (where, mend) in needed.items():
            if shutil.which(name) is None:
                missing[name] = f"{where}: {name!r} is not on this machine{mend}"
        path = image_of(image)
        # Else a name that the container's program resolves: docker://pytorch/pytorch.
        if (path.startswith("/") or path.endswith(".sif")) and not Path(path).exists():
            missing[path] = f"{of_image}: no image {path!r} on this machine"
    for name in sorted(benchmark.command.programs([point])):
        path = campaign.programs[name]
        if why := missing_program(name, path, here, bool(site.prologue)):
            missing[name] = f"{benchmark.name}: {why}"
    return missing
