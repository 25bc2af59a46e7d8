"""The mode of the host's high-bandwidth memory, as Linux shows it.

On Intel's Knights Landing (Xeon Phi x200) 16 GB of MCDRAM are either memory of their own (flat: a
NUMA node that has no CPUs), a cache of the other memory (cache), or some of both (hybrid). A cache
is in sysfs only where firmware describes it (``memory_side_cache``, HMAT), which that of Knights
Landing does not; but there all MCDRAM that is no NUMA node is cache.
"""

from pathlib import Path
from typing import Any

NODES = Path("/sys/devices/system/node")
MCDRAM_BYTES = 16 << 30  # of every Knights Landing


def numa_nodes(folder: Path = NODES) -> list[dict[str, Any]]:
    """Return number, CPUs (``0-63``, empty for none) and memory (bytes) of each node, and whether
    there is a cache on the memory's side."""
    nodes = []
    for path in sorted(folder.glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        lines = (path / "meminfo").read_text().splitlines()
        total = next(line.split()[-2] for line in lines if "MemTotal" in line)
        node: dict[str, Any] = {"node": int(path.name[4:])}
        node["cpus"] = (path / "cpulist").read_text().strip()
        node["memory_bytes"] = int(total) << 10
        node["cached"] = any(path.glob("memory_side_cache/index*"))
        nodes.append(node)
    return nodes


def facts(cpu_model: str | None, folder: Path = NODES) -> dict[str, Any]:
    """Return the nodes and the mode: ``flat``, ``cache`` or ``hybrid``; None where no
    high-bandwidth memory can be seen.

    A NUMA node with memory and no CPUs counts as such memory.
    """
    nodes = numa_nodes(folder)
    apart = sum(each["memory_bytes"] for each in nodes if not each["cpus"])
    cached = any(each["cached"] for each in nodes)
    if "Xeon Phi" in (cpu_model or "") and nodes:
        # The kernel keeps some of a node's memory for itself.
        cached = cached or apart < 0.9 * MCDRAM_BYTES
    mode = ("hybrid" if cached else "flat") if apart else ("cache" if cached else None)
    return {"mode": mode, "nodes": nodes}


def mismatch(asked: str, facts: dict[str, Any], host: str) -> str | None:
    """Return one line if a host is not in the mode that is asked for, else None."""
    if asked in ("any", facts["mode"]):
        return None
    known = f"is in mode {facts['mode']}" if facts["mode"] else "has no such memory to be seen"
    return f"memory_mode {asked}: host {host} {known} ({len(facts['nodes'])} NUMA node(s))"
