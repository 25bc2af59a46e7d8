"""Counters and sensors in sysfs: RAPL (powercap), Cray pm_counters, GPUs in hwmon.

Standard library only. Formats: docs/guide/energy.md has the sources.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from scalesweep.compute.power.domains import Domain, Sources, reason

_BYTES = 256
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_PM_FILE = re.compile(r"(?:(cpu|memory|accel)(\d*)_)?(power|energy)")
_PM_UNITS = {"energy": "J", "power": "W"}
_PM_PARTS = {"cpu": "package", "memory": "dram", "accel": "gpu"}
_HWMON_FILE = re.compile(r"(power|energy)(\d+)_(input|average)")
_GPU_CHIPS = ("amdgpu", "nouveau", "i915", "xe")


def _text(path: str) -> str:
    """Content of a small file; raises OSError."""
    # Opened again each time: a file that is gone or was replaced is to be noticed.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(file)


def _count(path: str) -> float:
    """A whole number that is not negative; raises OSError or ValueError."""
    text = _text(path)
    if not text.isdecimal():
        raise ValueError(f"holds {text[:40]!r}, not a number")
    return int(text)


def _names(folder: str) -> list[str]:
    """Names in a folder, sorted as people count; none if it cannot be listed."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (a launcher without counters waits for this)
    except OSError:
        return []
    return sorted(
        names, key=lambda name: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", name)]
    )


def _add(
    sources: Sources, domain: Domain, path: str, read: Callable[[str], float] = _count
) -> None:
    """Add a domain if it can be read, else say why not."""
    try:
        read(path)
    except (OSError, ValueError) as error:
        sources.refused[path] = reason(error)
    else:
        sources.readers[domain] = partial(read, path)


def find_rapl(root: str) -> Sources:
    """Zones of RAPL in the powercap tree under ``root`` (/sys), subzones by their parent's name.

    The zones of ``intel-rapl-mmio`` are other registers of the same counters and left out.
    """
    sources = Sources({}, {})
    folder = f"{root}/class/powercap"
    zones: dict[str, str] = {}
    for top in _names(folder):
        # A subzone has a link of its own next to its parent, and lies in its parent's folder.
        if re.fullmatch(r"intel-rapl(:\d+)+", top):
            zones.setdefault(top, f"{folder}/{top}")
            for sub in _names(f"{folder}/{top}"):
                if re.fullmatch(re.escape(top) + r":\d+", sub):
                    zones.setdefault(sub, f"{folder}/{top}/{sub}")
    names: dict[str, str] = {}
    for zone, path in sorted(zones.items(), key=lambda item: item[0].count(":")):
        try:
            own = re.sub(r"[^\w.-]", "_", _text(f"{path}/name")) or zone
        except OSError as error:
            sources.refused[f"{path}/name"] = reason(error)
            continue
        parent = names.get(zone.rpartition(":")[0])
        name = f"{parent}/{own}" if parent else own
        names[zone] = name if name not in names.values() else f"{name}@{zone}"
        kind = own.split("-")[0]
        part = kind if kind in ("package", "dram", "core", "uncore", "psys") else "other"
        try:
            wrap = int(_count(f"{path}/max_energy_range_uj")) or None
        except (OSError, ValueError):
            wrap = None
        domain = Domain(f"rapl:{names[zone]}", "rapl", part, "counter", 1e-6, wrap)
        _add(sources, domain, f"{path}/energy_uj")
    return sources


def _pm_value(unit: str, path: str) -> float:
    """The value of ``245 W 1582312345 us``; raises OSError or ValueError."""
    text = _text(path)
    match = re.fullmatch(rf"(\d+(?:\.\d+)?) {unit}(?: \d+ us)?", text)
    if not match:
        raise ValueError(f"holds {text[:40]!r}, not a number of {unit}")
    return float(match[1]) if "." in match[1] else int(match[1])


def find_pm_counters(root: str) -> Sources:
    """Cray's counters of a node; where a part has its energy, its power is not read too."""
    sources = Sources({}, {})
    folder = f"{root}/cray/pm_counters"
    files = {name: match for name in _names(folder) if (match := _PM_FILE.fullmatch(name))}
    for name, match in files.items():
        part, number, quantity = match.groups(default="")
        if quantity == "power" and name.removesuffix("power") + "energy" in files:
            continue
        kind = "counter" if quantity == "energy" else "power"
        place = _PM_PARTS.get(part, "node")
        domain = Domain(f"pm_counters:{part or 'node'}{number}", "pm_counters", place, kind, 1.0)
        _add(sources, domain, f"{folder}/{name}", partial(_pm_value, _PM_UNITS[quantity]))
    return sources


def find_hwmon(root: str) -> Sources:
    """The power sensor (microwatts) or energy counter (microjoules) of each GPU among the hwmon
    chips: the first that is there of energy, power_input and power_average."""
    sources = Sources({}, {})
    for chip in _names(f"{root}/class/hwmon"):
        folder = f"{root}/class/hwmon/{chip}"
        try:
            driver = _text(f"{folder}/name")
        except OSError:
            continue
        files = [match for name in _names(folder) if (match := _HWMON_FILE.fullmatch(name))]
        if driver not in _GPU_CHIPS or not files:
            continue
        match = min(files, key=lambda match: (match[1], match[3] != "input"))
        device = Path(f"{folder}/device").resolve().name
        domain = Domain(
            name=f"hwmon:{chip}/{driver}",
            source="hwmon",
            part="gpu",
            kind="counter" if match[1] == "energy" else "power",
            unit=1e-6,
            device=device if _PCI.fullmatch(device) else "",
        )
        _add(sources, domain, f"{folder}/{match[0]}")
    return sources
