"""The memory of a rank's device, and points that are left out because they need more."""

from collections.abc import Mapping
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign_keys import ExperimentKeys
from scalesweep.config.grid import Rule
from scalesweep.config.memory import DEVICE, Memory, PointMemory, point_memory
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import text_of

KEY = "skip_if_memory_exceeds"


def memory_on(
    benchmark: Benchmark, site: Site, memory_gib_per_rank: float | None = None
) -> Memory | None:
    """What a benchmark declares of its memory, with the device that its ranks have on a site.

    A GPU where the benchmark takes them and the site has them; else what a rank is given of the
    host's memory: ``memory_gib_per_rank``, or its share of a node.
    """
    if benchmark.memory is None:
        return None
    if benchmark.gpus is not None and site.gpus_per_node:
        gpu = site.memory_gib_per_gpu
        return benchmark.memory.on(None if gpu is None else text_of(gpu))
    if memory_gib_per_rank is not None:
        return benchmark.memory.on(text_of(memory_gib_per_rank))
    if site.memory_gib_per_node is None:
        return benchmark.memory
    ranks = "(ranks if ranks < ranks_per_node else ranks_per_node)"
    return benchmark.memory.on(f"{text_of(site.memory_gib_per_node)} / {ranks}")


def too_large(benchmark: Benchmark, site: Site, spec: ExperimentKeys, where: str) -> list[Rule]:
    """What leaves out points that need more than ``skip_if_memory_exceeds`` x their device, by the
    model's default constants: what is planned does not depend on what was measured.

    ``spec``: of the experiment; ``where`` starts messages. Raises UserError where no point can be
    judged: benchmark or site do not say what that takes.
    """
    most = spec.skip_if_memory_exceeds
    if most is None:
        return []
    memory = memory_on(benchmark, site, spec.memory_gib_per_rank)
    transformer = benchmark.transformer
    if memory is None or transformer is None:
        raise UserError(
            f"{where}.{KEY}: {benchmark.name} does not say how much memory a point needs "
            "(transformer and memory in benchmark.yaml)"
        )
    if DEVICE not in memory.fields:
        key = "memory_gib_per_gpu" if site.gpus_per_node else "memory_gib_per_node"
        raise UserError(f"{where}.{KEY}: site {site.name} does not say {key}")

    reason = f"needs more than {text_of(most)} x the memory of its device, by the memory model"

    def exceeds(point: Mapping[str, Any]) -> str | None:
        from scalesweep.analysis.memory_fit import MemoryFit  # few campaigns need it

        try:
            judged = point_memory(memory, transformer, benchmark.mesh, point, where)
        except UserError:  # a point that cannot be: its own check says why
            return None
        if not isinstance(judged, PointMemory) or judged.device is None:
            return None
        return reason if MemoryFit().needed(judged.parts) > most * judged.device else None

    return [exceeds]
