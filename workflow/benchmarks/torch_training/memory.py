"""The most memory that a rank has held, in bytes."""

import re
from pathlib import Path

import torch

from harness.native import Metric, metric


def peaks(device: torch.device) -> dict[str, int]:
    """Return this rank's peaks by the names of the metrics; what is not known is left out.

    `peak_rss`: resident on the host since the process started, PyTorch's code with it. On a GPU
    `peak_memory_allocated` by tensors, and `peak_memory_reserved` by PyTorch's allocator for them.
    """
    most = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    held = {"peak_rss": int(most[1]) << 10} if most else {}
    if device.type == "cuda":
        held["peak_memory_allocated"] = torch.cuda.max_memory_allocated(device)
        held["peak_memory_reserved"] = torch.cuda.max_memory_reserved(device)
    return held


def metrics(ranks: list[dict[str, int]]) -> dict[str, Metric]:
    """Return the peaks of the rank that held the most, which is the one that runs out first."""
    return {
        name: metric(max(rank[name] for rank in ranks), "bytes", scope="rank")
        for name in ranks[0]
        if all(name in rank for rank in ranks)
    }
