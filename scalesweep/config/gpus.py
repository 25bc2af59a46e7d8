"""GPUs: how many a point needs on a node, and which of a node's are visible to its program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted

if TYPE_CHECKING:  # tables ask which GPUs are visible, and read no YAML
    from scalesweep.config.benchmark import Benchmark
    from scalesweep.config.site import Site

VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus(text: str) -> list[str]:
    """The GPUs that a value of ``CUDA_VISIBLE_DEVICES`` names: numbers, or what begins a UUID.

    CUDA ignores -1, and what follows it: ``""`` and ``"-1"`` hide all GPUs.
    """
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    return names[: names.index("-1")] if "-1" in names else names


def check_gpus(benchmark: Benchmark, site: Site, point: Mapping[str, Any], where: str) -> None:
    """Raise UserError for a point that needs more GPUs of a node than there are.

    Of sites without ``gpus_per_node`` nothing is known. Where ``CUDA_VISIBLE_DEVICES`` hides all
    GPUs, devices are those of CPUs.
    """
    if benchmark.gpus is None or not site.gpus_per_node:
        return
    there = f"site {site.name} has gpus_per_node = {site.gpus_per_node}"
    available = site.gpus_per_node
    visible = benchmark.variables(point).get(VISIBLE, site.env.get(VISIBLE))
    if visible is not None:
        available = min(available, len(visible_gpus(visible)))
        there += f", of which {VISIBLE} = {visible!r} shows {available}"
    ranks = site.ranks_on_node(point)
    needed = int(benchmark.gpus.number(point)) * ranks
    if needed > available > 0:
        values = [f"{name} = {point[name]}" for name in sorted(benchmark.gpus.names)]
        at = f"{where}: {', '.join(values)}" if values else where  # the same at all points
        raise UserError(
            f"{at}: {counted(ranks, 'rank')} on a node would need {needed} GPUs, {there}"
        )
