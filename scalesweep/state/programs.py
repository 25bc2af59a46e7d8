"""What a run starts: its program, the files that it is, and the launcher in front of it."""

from collections.abc import Mapping
from typing import Any

from scalesweep.compute.job_spec import ProgramOrder
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign


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
