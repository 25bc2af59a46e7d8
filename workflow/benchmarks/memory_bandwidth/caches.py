"""How large the caches of this process are, and how large arrays must be to miss them."""

import os
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
TIMES = 4  # STREAM's rule: each array at least four times the sum of the last-level caches
LEAST_BYTES = 64 << 20  # where no cache size can be read
GPU_MIB = 1 << 10  # of an array on a GPU: above four times any second-level cache of today
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_bytes(cpus: set[int], folder: Path = CPUS) -> int | None:
    """Return the bytes of the last-level caches that these CPUs share, each counted once.

    None where the kernel does not tell.
    """
    caches = {}
    for cpu in cpus:
        # The last one is of the highest level.
        for index in sorted((folder / f"cpu{cpu}" / "cache").glob("index*"))[-1:]:
            size = (index / "size").read_text().strip()
            shared = (index / "shared_cpu_list").read_text().strip()
            caches[shared] = int(size[:-1]) * _UNITS[size[-1]]
    return sum(caches.values()) or None


def array_bytes(array_mib: int | None) -> int:
    """Return the size of an array: the one that is asked for, or what misses the caches here."""
    if array_mib is not None:
        return array_mib << 20
    return max(LEAST_BYTES, TIMES * (last_level_bytes(os.sched_getaffinity(0)) or 0))
