"""Hardware of this host: processors, frequency governors, GPUs with clocks and their links.

Ranks that are slow for a reason are found here: a GPU whose memory clock is 5 % lower, a pair of
GPUs across a host bridge, a node on the powersave governor. What cannot be read is None.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

_CPUS = Path("/sys/devices/system/cpu")
# nvidia-smi's name of a field -> ours.
_GPU_FIELDS = {
    "index": "index",
    "name": "name",
    "pci.bus_id": "pci_bus_id",
    "clocks.max.sm": "max_sm_clock_mhz",
    "clocks.max.mem": "max_memory_clock_mhz",
    "clocks.applications.memory": "application_memory_clock_mhz",
    "clocks.sm": "sm_clock_mhz",
    "clocks.mem": "memory_clock_mhz",
    "memory.total": "memory_mib",
    "power.limit": "power_limit_w",
    "driver_version": "driver",
}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def field(path: str, key: str) -> str | None:
    """Return what a file of lines ``key: value`` says of a key."""
    match = re.search(rf"^{key}\s*:[ \t]*(.*)$", _text(Path(path)), re.MULTILINE)
    return match[1].strip() if match else None


def governors(cpus: set[int], folder: Path = _CPUS) -> str | None:
    """Return the frequency governors of these CPUs, each once (``performance``, or several)."""
    names = {_text(folder / f"cpu{cpu}" / "cpufreq" / "scaling_governor") for cpu in cpus}
    return ", ".join(sorted(filter(None, names))) or None


def gpu_list(table: str) -> list[dict[str, Any]]:
    """Parse nvidia-smi's CSV without header and units, whose columns are those of _GPU_FIELDS.

    Numbers become floats; what a GPU does not support (``[N/A]``, ``[Not Supported]``) is None.
    """
    rows = [[cell.strip() for cell in line.split(", ")] for line in table.splitlines()]
    return [
        dict(zip(_GPU_FIELDS.values(), map(_value, cells), strict=True))
        for cells in rows
        if len(cells) == len(_GPU_FIELDS)
    ]


def _value(cell: str) -> float | str | None:
    if cell.startswith("[") or cell in ("N/A", ""):
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


def gpu_links(matrix: str) -> dict[str, str]:
    """Parse ``nvidia-smi topo -m``: how each pair of GPUs is connected (NV18, PIX, PHB, SYS...)."""
    rows = [line.split() for line in _ESCAPES.sub("", matrix).splitlines()]
    header = next((row for row in rows if row and row[0] == "GPU0" and "X" not in row), [])
    names = [name for name in header if re.fullmatch(r"GPU\d+", name)]
    return {
        f"{row[0]}-{other}": link
        for row in rows
        if row and row[0] in names and "X" in row
        for other, link in zip(names, row[1 : len(names) + 1], strict=False)
        if names.index(other) > names.index(row[0])
    }


def _nvidia_smi(*words: str) -> str:
    program = shutil.which("nvidia-smi")
    try:
        command = [program or "", *words]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def cpu_model() -> str | None:
    """Return the name of this host's processors."""
    return field("/proc/cpuinfo", "model name")


def host_hardware() -> dict[str, Any]:
    """Return CPU model, logical CPUs, governor, memory (bytes), NUMA nodes, GPUs and their links.

    Asks nvidia-smi where there is one, which takes most of a second: to be called once per host
    and outside of what is timed.
    """
    memory = field("/proc/meminfo", "MemTotal")
    fields = ",".join(_GPU_FIELDS)
    gpus = gpu_list(_nvidia_smi(f"--query-gpu={fields}", "--format=csv,noheader,nounits"))
    return {
        "cpu_model": cpu_model(),
        "cpus": os.cpu_count(),
        "governor": governors(set(os.sched_getaffinity(0))),
        "memory_bytes": int(memory.split()[0]) * 1024 if memory else None,
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "gpus": gpus,
        "gpu_links": gpu_links(_nvidia_smi("topo", "-m")) if len(gpus) > 1 else {},
    }
