"""The host's memory as Linux sees it: NUMA nodes, and the mode of high-bandwidth memory.

On Intel's Knights Landing (Xeon Phi x200) 16 GB of MCDRAM are either memory of their own (flat: a
NUMA node that has no CPUs), a cache of the other memory (cache), or some of both (hybrid). A cache
is in sysfs only where firmware describes it (``memory_side_cache``, HMAT), which that of Knights
Landing does not; but there all MCDRAM that is no NUMA node is cache.
"""

import re
from pathlib import Path
from typing import Any

NODES = Path("/sys/devices/system/node")
MCDRAM_BYTES = 16 << 30  # of every Knights Landing


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _kib(text: str) -> int | None:
    match = re.search(r"(\d+)\s*([kKmM]?)", text)
    return int(match[1]) << {"": 0, "k": 10, "m": 20}[match[2].lower()] if match else None


def numa_nodes(folder: Path = NODES) -> list[dict[str, Any]]:
    """Return number, CPUs (``0-63``, empty for none), memory and memory-side cache of each node.

    Sizes are bytes; None where they cannot be read.
    """
    nodes = []
    for path in sorted(folder.glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        total = re.search(r"MemTotal:\s*(\d+ kB)", _text(path / "meminfo"))
        caches = [_kib(_text(size)) for size in path.glob("memory_side_cache/index*/size")]
        nodes.append(
            {
                "node": int(path.name[4:]),
                "cpus": _text(path / "cpulist"),
                "memory_bytes": _kib(total[1]) if total else None,
                "cache_bytes": sum(size for size in caches if size) or None,
            }
        )
    return nodes


def mode(nodes: list[dict[str, Any]], cpu_model: str | None) -> str | None:
    """Return ``flat``, ``cache`` or ``hybrid``; None where no high-bandwidth memory can be seen.

    A NUMA node with memory and no CPUs counts as such memory.
    """
    apart = sum(each["memory_bytes"] or 0 for each in nodes if not each["cpus"])
    cached = any(each["cache_bytes"] for each in nodes)
    if "Xeon Phi" in (cpu_model or "") and nodes:
        # The kernel keeps some of a node's memory for itself.
        cached = cached or apart < 0.9 * MCDRAM_BYTES
    if apart:
        return "hybrid" if cached else "flat"
    return "cache" if cached else None


def policy(process: Path = Path("/proc/self")) -> dict[str, Any]:
    """Return the NUMA policies of this process's memory, as numactl set them, and allowed nodes."""
    lines = _text(process / "numa_maps").splitlines()
    kinds = {words[1] for line in lines if len(words := line.split()) > 1}
    allowed = re.search(r"Mems_allowed_list:\s*(\S+)", _text(process / "status"))
    return {"policies": sorted(kinds), "allowed_nodes": allowed[1] if allowed else None}


def facts(cpu_model: str | None, folder: Path = NODES) -> dict[str, Any]:
    """Return what is known of this host's memory and of how this process takes it."""
    nodes = numa_nodes(folder)
    return {"mode": mode(nodes, cpu_model), "nodes": nodes, **policy()}


def mismatch(asked: str, facts: dict[str, Any], host: str) -> str | None:
    """Return one line if a host is not in the mode that is asked for, else None."""
    if asked in ("any", facts["mode"]):
        return None
    apart = [str(each["node"]) for each in facts["nodes"] if not each["cpus"]]
    known = (
        f"is in mode {facts['mode']}" if facts["mode"] else "has no such memory that can be seen"
    )
    return (
        f"memory_mode {asked}: host {host} {known} ({len(facts['nodes'])} NUMA node(s),"
        f" without CPUs: {', '.join(apart) or 'none'})"
    )
