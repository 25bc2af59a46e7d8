"""The most memory that a rank has held, in bytes; and what is said when there is no more."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from harness.native import Metric, metric
from harness.program import EXIT_GPU_MEMORY, EXIT_HOST_MEMORY, ProgramError

# Of PyTorch's allocator on the host, and of NCCL and cuBLAS, which allocate on the GPU themselves.
HOST = re.compile(r"DefaultCPUAllocator|Cannot allocate memory|not enough memory")
GPU = re.compile(r"CUDA out of memory|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED")
KILLED = re.compile(r"DataLoader worker .* is killed by signal: Killed")
STATUS = Path("/proc/self/status")


def peaks(device: torch.device) -> dict[str, int]:
    """Return this rank's peaks by the names of the metrics; what is not known is left out.

    `peak_rss`: resident on the host since the process started, PyTorch's code with it. On a GPU
    `peak_memory_allocated` by tensors, and `peak_memory_reserved` by PyTorch's allocator for them.
    """
    held = {}
    if (most := of_status("VmHWM")) is not None:
        held["peak_rss"] = most
    if device.type == "cuda":
        held["peak_memory_allocated"] = torch.cuda.max_memory_allocated(device)
        held["peak_memory_reserved"] = torch.cuda.max_memory_reserved(device)
    return held


def of_status(name: str) -> int | None:
    """Return the bytes that Linux gives under a name of this process's status."""
    try:
        match = re.search(rf"^{name}:\s*(\d+) kB", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def metrics(ranks: list[dict[str, int]]) -> dict[str, Metric]:
    """Return the peaks of the rank that held the most, which is the one that runs out first."""
    return {
        name: metric(max(rank[name] for rank in ranks), "bytes", scope="rank")
        for name in ranks[0]
        if all(name in rank for rank in ranks)
    }


@contextmanager
def told_when_out(what: str) -> Iterator[None]:
    """Raise ProgramError where memory runs out during `what`: code 79 on the GPU, 71 on the host.

    The kernel, or Slurm, may as well kill a process that takes too much of the host's, which the
    launcher sees.
    """
    try:
        yield
    except MemoryError as error:
        said = f": {error}" if str(error) else ""
        raise ProgramError(EXIT_HOST_MEMORY, f"out of memory on the host, {what}{said}") from None
    except RuntimeError as error:
        # A pipeline raises an error of its own from that of the allocator.
        errors = [error, *([error.__cause__] if error.__cause__ else [])]
        said = next((text for text in map(str, errors) if HOST.search(text)), str(error))
        first = said.strip().partition("\n")[0][:300]
        if isinstance(error, torch.OutOfMemoryError) or GPU.search(said):
            # What follows is advice on settings of the allocator.
            first = said.strip().partition("\n")[0].partition(" If reserved")[0][:500]
            raise ProgramError(
                EXIT_GPU_MEMORY, f"out of memory on the GPU, {what}: {first}"
            ) from None
        if HOST.search(said) or KILLED.search(said):
            message = f"out of memory on the host, {what}: {first}"
            raise ProgramError(EXIT_HOST_MEMORY, message) from None
        raise
