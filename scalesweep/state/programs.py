"""What a run starts: its program, the files that it is, and the launcher in front of it."""

from collections.abc import Mapping
from typing import Any

from scalesweep.compute.job_spec import ProgramOrder
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.command_template import named_programs, program_named


def python_of(campaign: Campaign, benchmark: Benchmark) -> str:
    """What ``{python}`` is in the command of a benchmark: its own, else the site's."""
    if benchmark.python is None:
        return campaign.site.python_for(benchmark.framework)
    name = program_named(benchmark.python)
    path = campaign.programs[name] if name else benchmark.python
    return named_programs({"python": path})["python"]


def launcher_of(campaign: Campaign, benchmark: Benchmark, point: Mapping[str, Any]) -> list[str]:
    """The words before the command: of the benchmark, else of the site."""
    python = python_of(campaign, benchmark)
    words = container_words(campaign, benchmark)
    return campaign.site.launcher(point, benchmark.launch, python, benchmark.framework, words)


def container_words(campaign: Campaign, benchmark: Benchmark) -> tuple[str, ...]:
    """The words that start the container of a benchmark's programs: its own, else the site's."""
    return campaign.site.container if benchmark.container is None else benchmark.container


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


def folders_of(benchmark: Benchmark) -> dict[str, str]:
    """The folders that a command may name."""
    return {"benchmark": str(benchmark.folder), "benchmarks": str(benchmark.folder.parent)}
