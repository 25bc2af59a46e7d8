"""NVIDIA GPUs: NVML through ctypes.

Standard library only. NVML API reference: docs.nvidia.com/deploy/nvml-api.
"""

import ctypes
import os
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

from scalesweep.compute.power.domains import Domain, Sources

LIBRARY = "libnvidia-ml.so.1"
_DRIVER = "/dev/nvidiactl"


class _PciInfo(ctypes.Structure):
    _fields_ = (
        ("busIdLegacy", ctypes.c_char * 16),
        *((name, ctypes.c_uint) for name in ("domain", "bus", "device", "id", "subsystem")),
        ("busId", ctypes.c_char * 32),
    )


def possible() -> bool:
    """Whether this machine may have an NVIDIA GPU; costs some calls of stat."""
    return os.path.exists(_DRIVER) or shutil.which("nvidia-smi") is not None  # noqa: PTH110


def find_nvml(library: Any = None) -> Sources:
    """GPUs as NVML knows them: energy since the driver was loaded (Volta and later), else power.

    ``library`` has NVML's functions; by default it is loaded. Finds nothing where there is none.
    """
    sources = Sources({}, {})
    try:
        nvml = library or ctypes.CDLL(LIBRARY)
    except OSError as error:
        sources.refused["NVML"] = f"{LIBRARY} cannot be loaded ({error})"
        return sources

    def ask(function: str, kind: Any, *words: Any) -> Any:
        value = kind()
        code = getattr(nvml, function)(*words, ctypes.byref(value))
        if code:
            raise OSError(code, f"{function} gives error {code}")
        return value

    try:
        if code := nvml.nvmlInit_v2():
            raise OSError(code, f"nvmlInit gives error {code}")
        count = ask("nvmlDeviceGetCount_v2", ctypes.c_uint).value
    except (OSError, AttributeError) as error:
        sources.refused["NVML"] = str(error)
        return sources

    def value(function: str, kind: Any, handle: Any) -> float:
        return float(ask(function, kind, handle).value)

    for index in range(count):
        name = f"nvml:gpu{index}"
        try:
            handle = ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_void_p, ctypes.c_uint(index))
            device = ask("nvmlDeviceGetPciInfo_v3", _PciInfo, handle).busId.decode().lower()[-12:]
        except (OSError, AttributeError) as error:
            sources.refused[name] = str(error)
            continue
        ways: tuple[tuple[str, str, Any], ...] = (
            ("counter", "nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong),  # mJ
            ("power", "nvmlDeviceGetPowerUsage", ctypes.c_uint),  # mW
        )
        for kind, function, c_type in ways:
            read: Callable[[], float] = partial(value, function, c_type, handle)
            try:
                read()
            except (OSError, AttributeError) as error:
                sources.refused[name] = str(error)
                continue
            sources.refused.pop(name, None)
            sources.readers[Domain(name, "nvml", "gpu", kind, 1e-3, device=device)] = read
            break
    return sources
