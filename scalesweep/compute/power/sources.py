"""The search for what this machine can be read by.

Standard library only; ``nothing_here`` is cheap enough to be asked before every run.
"""

from collections.abc import Collection

from scalesweep.compute.power import gpu
from scalesweep.compute.power.domains import POWER_SOURCES, Sources
from scalesweep.compute.power.sysfs import find_hwmon, find_pm_counters, find_rapl

_IN_SYSFS = {"rapl": find_rapl, "pm_counters": find_pm_counters, "hwmon": find_hwmon}


def in_sysfs(sysfs: str, wanted: Collection[str]) -> Sources:
    """What the files of ``sysfs`` give of the sources ``wanted``."""
    sources = Sources({}, {})
    for source, find in _IN_SYSFS.items():
        if source in wanted:
            readers, refused = find(sysfs)
            sources.readers.update(readers)
            sources.refused.update(refused)
    return sources


def nothing_here(sysfs: str, wanted: Collection[str], host: str) -> str | None:
    """Why no sampler can measure anything on this host; None if one may."""
    sources = in_sysfs(sysfs, wanted)
    if sources.readers:
        return None
    if "nvml" in wanted and gpu.possible():
        return None
    return why_nothing(wanted, sources.refused, host)


def why_nothing(wanted: Collection[str], refused: dict[str, str], host: str) -> str:
    """One line on why nothing can be measured."""
    if not refused:
        kinds = {"rapl": "RAPL", "nvml": "NVML"}
        names = [kinds.get(name, name) for name in POWER_SOURCES if name in wanted]
        listed = f"{', '.join(names[:-1])} or {names[-1]}" if names[1:] else "".join(names)
        return f"no {listed} counter on host {host}"
    (path, why), *more = refused.items()
    others = f", and {len(more)} more" if more else ""
    return f"no counter can be read on host {host}: {path}: {why}{others}"


def find(sysfs: str, wanted: Collection[str]) -> Sources:
    """All that can be read here, and why the rest cannot: place -> reason."""
    sources = in_sysfs(sysfs, wanted)
    if "nvml" in wanted and gpu.possible():
        nvml = gpu.find_nvml()
        sources.readers.update(nvml.readers)
        sources.refused.update(nvml.refused)
    return sources
