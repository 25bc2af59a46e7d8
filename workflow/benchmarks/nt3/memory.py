"""The mode of the host's high-bandwidth memory, as Linux shows it.

On Intel's Knights Landing (Xeon Phi x200) 16 GB of MCDRAM are either memory of their own (flat: a
NUMA node that has no CPUs), a cache of the other memory (cache), or some of both (hybrid). A cache
is in sysfs only where firmware describes it (``memory_side_cache``, HMAT), which that of Knights
Landing does not; but there all MCDRAM that is no NUMA node is cache.
"""

from pathlib import Path

NODES = Path("/sys/devices/system/node")
MCDRAM_BYTES = 16 << 30  # of every Knights Landing


def mode(cpu_model: str | None, folder: Path = NODES) -> str | None:
    """Return the mode of this host: ``flat``, ``cache`` or ``hybrid``; None where no high-bandwidth
    memory can be seen.

    A NUMA node with memory and no CPUs counts as such memory.
    """
    nodes = list(folder.glob("node[0-9]*"))
    apart = 0  # bytes of nodes without CPUs
    for node in nodes:
        if not (node / "cpulist").read_text().strip():
            lines = (node / "meminfo").read_text().splitlines()
            apart += int(next(line.split()[-2] for line in lines if "MemTotal" in line)) << 10
    cached = any(folder.glob("node[0-9]*/memory_side_cache/index*"))
    if "Xeon Phi" in (cpu_model or "") and nodes:
        # The kernel keeps some of a node's memory for itself.
        cached = cached or apart < 0.9 * MCDRAM_BYTES
    return ("hybrid" if cached else "flat") if apart else ("cache" if cached else None)


def mismatch(asked: str, there: str | None, host: str) -> str | None:
    """Return one line if a host is not in the mode that is asked for, else None."""
    if asked in ("any", there):
        return None
    known = f"is in mode {there}" if there else "has no such memory to be seen"
    return f"memory_mode {asked}: host {host} {known}"
