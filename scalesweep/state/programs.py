"""What a run starts: its program, the files that it is, and the launcher in front of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import ProgramOrder
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.command_template import Templates
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.core.paths import LAUNCHERS


def program_order(
    campaign: Campaign, benchmark: Benchmark, point: Mapping[str, Any]
) -> ProgramOrder:
    """What is started at a point, with nothing of the site in it, and the files that it is."""
    launch = benchmark.launch
    return {
        "command": benchmark.command.fill(point),
        "env": benchmark.variables(point),
        "launch": None if launch is None else {key: list(words) for key, words in launch.items()},
        "files": program_files(campaign, benchmark, point),
    }


def program_files(
    campaign: Campaign, benchmark: Benchmark, point: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Files of the program, by the words of the command that name them (at a ``point``).

    Of a native benchmark its folder: it is recorded, and what it means is said by the version
    alone, so that comments and formatting make nothing stale.
    """
    if benchmark.extract is None:
        return {"{benchmark}": str(benchmark.folder)}
    return benchmark.command.files(folders_of(benchmark), campaign.programs, point)


def launcher_words(
    site: Site, point: Mapping[str, Any], framework: str | None = None, own: Templates | None = None
) -> list[str]:
    """The words put before the program's own command, filled in for a point. ``own``: templates of
    the benchmark instead of the site's. Raises UserError if the site starts nothing."""
    if site.launch is None:
        raise UserError(f"{site.file}: has no 'launch', so no run can start there")
    name, per_node = template_for(int(point["ranks"])), site.ranks_on_node(point)
    template = (own or site.launch_for(framework))[name]
    # The site's words are written for its own Python, all others for that of the framework.
    python = site.python_for(framework if template != getattr(site.launch, name) else None)
    values = {
        "ranks": int(point["ranks"]),
        "nodes": site.nodes_for(point),
        "ranks_per_node": per_node,
        "cpus_per_rank": max(1, site.cores_per_node // per_node),
        "python": python,
        "bin": str(Path(python).parent),
        "launchers": str(LAUNCHERS),
    }
    return [*(word.format_map(values) for word in template), *site.container]


def template_for(ranks: int) -> str:
    """The name of the launcher template of a run of so many ranks."""
    return "single" if ranks == 1 else "multi"


def folders_of(benchmark: Benchmark) -> dict[str, str]:
    """The folders that a command may name."""
    return {"benchmark": str(benchmark.folder), "benchmarks": str(benchmark.folder.parent)}
