"""What a plan says of the machine: peaks of data sheets, and the memory of a rank's device."""

import math
from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.shapes import DEVICE, Memory
from scalesweep.config.site import Site
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of


def peaks_of(site: Site) -> dict[str, Any]:
    """What data sheets state of a node: ``flops`` by type, ``bytes_per_s``, and ``devices``, if the
    site names them, which share these; the site's own numbers come first."""
    stated = site.data_sheet.model_dump(exclude_none=True, exclude={"device"})
    if site.data_sheet.device is None:
        return stated
    count, device = site.gpus_per_node, DEVICES[site.data_sheet.device]
    flops = {dtype: value * count for dtype, value in device.flops.items()}
    flops |= stated.get("flops", {})
    usual = {"bytes_per_s": device.bytes_per_s * count, "devices": count}
    return {**usual, **stated, "flops": flops}


def threads_per_core(site: Site, benchmark: Benchmark, point: Mapping[str, Any]) -> float | None:
    """Threads for each core of a point's fullest node; None where it is not known, and of imported
    runs, whose machine is not this site."""
    stated = benchmark.threads.number(point) if benchmark.threads else 1
    threads = max(1, math.ceil(stated)) if stated else None  # as many as the framework chooses
    load = site.ranks_on_node(point) * (threads or 1) / site.cores_per_node
    return None if site.launch is None or (threads is None and load <= 1) else load


def memory_on(
    benchmark: Benchmark, site: Site, memory_gib_per_rank: float | None = None
) -> Memory | None:
    """What a benchmark declares of its memory, with the device that its ranks have on a site: a
    GPU if both know of them; else ``memory_gib_per_rank``, or a rank's share of a node."""
    memory, gib, share = benchmark.memory, memory_gib_per_rank, ""
    if benchmark.gpus is not None and site.gpus_per_node:
        gib = site.memory_gib_per_gpu
    elif gib is None and site.memory_gib_per_node is not None:
        gib = site.memory_gib_per_node
        share = " / (ranks if ranks < ranks_per_node else ranks_per_node)"
    if memory is None or memory.device_gib is not None or gib is None:
        return memory
    return memory.model_copy(update={DEVICE: Expression(f"{text_of(gib)}{share}", DEVICE)})
