"""Counters of energy and sensors of power that a host has: each a domain and how it is read.

Every value is in joules (of a counter) or watts (of a sensor). Standard library only: the launcher
asks before each run. Formats: docs/guide/energy.md has the sources.
"""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

POWER_SOURCES = ("rapl", "nvml", "pm_counters", "hwmon")
# So much of a time may be without values at its edges: the sampler's start, clocks of hosts that
# differ. A part of the time, and seconds.
SLACK, SLACK_S = 0.01, 0.02
# A sensor without a value for more intervals than this was not watched.
WATCHED = 3.0
LIBRARY = "libnvidia-ml.so.1"
_DRIVER = "/dev/nvidiactl"
_PM_FILE = re.compile(r"(?:(cpu|memory|accel)(\d*)_)?(power|energy)")
_PM_PARTS = {"cpu": "package", "memory": "dram", "accel": "gpu"}
_HWMON_FILES = ("energy1_input", "power1_input", "power1_average")
_HWMON_GPUS = ("amdgpu", "i915", "xe")
_RAPL_PARTS = ("package", "dram", "core", "uncore", "psys")

Read = Callable[[], float]


class Domain(NamedTuple):
    """One quantity of one part of a host.

    ``name`` is unique on its host (``rapl:package-0``). ``part``: node, psys, package, dram, core,
    uncore, gpu or other. ``kind``: ``counter`` of joules, or ``power`` in watts. ``wrap``: joules
    at which a counter starts again at 0, None if it does not.
    """

    name: str
    source: str
    part: str
    kind: str
    wrap: float | None = None


def host_name() -> str:
    """This host as Slurm calls it, else as it calls itself."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def reason(error: Exception) -> str:
    """An error in a few words, without its file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def find(sysfs: str, wanted: Collection[str]) -> tuple[dict[Domain, Read], dict[str, str]]:
    """All counters and sensors of the sources ``wanted``, each of which was read once; and why the
    rest cannot be read, by place."""
    readers: dict[Domain, Read] = {}
    refused: dict[str, str] = {}
    for source in (name for name in _FINDERS if name in wanted):
        try:
            for domain, place, read in _FINDERS[source](sysfs):
                try:
                    read()
                    readers[domain] = read
                except (OSError, ValueError) as error:
                    refused[place] = reason(error)
        except (OSError, AttributeError) as error:
            refused[source] = reason(error)
    return readers, refused


def nothing_here(sysfs: str, wanted: Collection[str], host: str) -> str | None:
    """Why no sampler can measure anything on this host; None if one may. Costs some calls of stat
    on a machine without counters."""
    readers, refused = find(sysfs, [name for name in wanted if name != "nvml"])
    maybe = "nvml" in wanted and (Path(_DRIVER).exists() or shutil.which("nvidia-smi"))
    return None if readers or maybe else why_nothing(wanted, refused, host)


def why_nothing(wanted: Collection[str], refused: dict[str, str], host: str) -> str:
    """One line on why nothing can be measured."""
    if not refused:
        return f"host {host} has no counters of {', '.join(wanted)}"
    (path, why), *more = refused.items()
    others = f", and {len(more)} more" if more else ""
    return f"no counter can be read on host {host}: {path}: {why}{others}"


_Found = Iterator[tuple[Domain, str, Read]]


def _names(folder: str) -> list[str]:
    """Names in a folder, sorted as people count; none if it cannot be listed."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (a launcher without counters waits for this)
    except OSError:
        return []
    return sorted(names, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])


def _number(path: str, unit: float, pattern: str = r"(\d+)") -> float:
    """The number in a small file times ``unit``; raises OSError or ValueError."""
    # Opened again each time: a file that is gone or was replaced is to be noticed.
    text = Path(path).read_text().strip()
    match = re.fullmatch(pattern, text)
    if not match:
        raise ValueError(f"holds {text[:40]!r}, not a number")
    return float(match[1]) * unit


def _rapl(root: str) -> _Found:
    """Zones of RAPL in powercap, subzones by their parent's name.

    The zones of ``intel-rapl-mmio`` are other registers of the same counters and left out.
    """
    folder = f"{root}/class/powercap"
    zones = [zone for zone in _names(folder) if re.fullmatch(r"intel-rapl(:\d+)+", zone)]
    names: dict[str, str] = {}
    for zone in sorted(zones, key=lambda zone: zone.count(":")):
        path = f"{folder}/{zone}"
        own = re.sub(r"[^\w.-]", "_", Path(f"{path}/name").read_text().strip())
        parent = names.get(zone.rpartition(":")[0])
        names[zone] = f"{parent}/{own}" if parent else own
        part = own.partition("-")[0]
        try:
            wrap = _number(f"{path}/max_energy_range_uj", 1e-6) or None
        except (OSError, ValueError):
            wrap = None
        part = part if part in _RAPL_PARTS else "other"
        counter = f"{path}/energy_uj"
        domain = Domain(f"rapl:{names[zone]}", "rapl", part, "counter", wrap)
        yield domain, counter, partial(_number, counter, 1e-6)


def _pm_counters(root: str) -> _Found:
    """Cray's counters of a node; where a part has its energy, its power is not read too."""
    folder = f"{root}/cray/pm_counters"
    files = {name: match for name in _names(folder) if (match := _PM_FILE.fullmatch(name))}
    for name, match in files.items():
        part, number, quantity = match.groups(default="")
        if quantity == "power" and name.removesuffix("power") + "energy" in files:
            continue
        kind, unit = ("counter", "J") if quantity == "energy" else ("power", "W")
        where = f"pm_counters:{part or 'node'}{number}"
        domain = Domain(where, "pm_counters", _PM_PARTS.get(part, "node"), kind)
        text = rf"(\d+(?:\.\d+)?) {unit}(?: \d+ us)?"  # 245 W 1582312345 us
        yield domain, f"{folder}/{name}", partial(_number, f"{folder}/{name}", 1.0, text)


def _hwmon(root: str) -> _Found:
    """The energy counter (microjoules) or power sensor (microwatts) of each AMD or Intel GPU."""
    for chip in _names(f"{root}/class/hwmon"):
        folder = Path(root, "class/hwmon", chip)
        try:
            driver = (folder / "name").read_text().strip()
        except OSError:
            continue
        file = next((name for name in _HWMON_FILES if (folder / name).exists()), None)
        if driver in _HWMON_GPUS and file:
            kind = "counter" if file.startswith("energy") else "power"
            path = str(folder / file)
            domain = Domain(f"hwmon:{chip}/{driver}", "hwmon", "gpu", kind)
            yield domain, path, partial(_number, path, 1e-6)


def _nvml(_root: str) -> _Found:
    """GPUs as NVML knows them: energy since the driver was loaded (Volta and later), else power.
    Raises OSError or AttributeError without NVML (docs.nvidia.com/deploy/nvml-api)."""
    if not Path(_DRIVER).exists() and shutil.which("nvidia-smi") is None:
        return
    import ctypes  # some milliseconds, which machines without such a GPU are spared

    nvml = ctypes.CDLL(LIBRARY)

    def ask(function: str, kind: Any, *words: Any) -> Any:
        value = kind()
        if code := getattr(nvml, function)(*words, ctypes.byref(value)):
            raise OSError(code, f"{function} gives error {code}")
        return value

    def read(function: str, kind: Any, index: int) -> float:
        handle = ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_void_p, ctypes.c_uint(index))
        return float(ask(function, kind, handle).value) * 1e-3  # mJ, mW

    if code := nvml.nvmlInit_v2():
        raise OSError(code, f"nvmlInit gives error {code}")
    for index in range(ask("nvmlDeviceGetCount_v2", ctypes.c_uint).value):
        name = f"nvml:gpu{index}"
        kind = "counter"
        reader = partial(read, "nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong, index)
        try:
            reader()
        except (OSError, AttributeError):
            kind, reader = "power", partial(read, "nvmlDeviceGetPowerUsage", ctypes.c_uint, index)
        yield Domain(name, "nvml", "gpu", kind), name, reader


_FINDERS: dict[str, Callable[[str], _Found]] = {
    "rapl": _rapl, "nvml": _nvml, "pm_counters": _pm_counters, "hwmon": _hwmon,
}  # fmt: skip
