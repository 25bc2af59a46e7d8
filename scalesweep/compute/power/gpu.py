"""NVIDIA GPUs: NVML through ctypes, or nvidia-smi where the library cannot be loaded.

Standard library only. NVML API reference: docs.nvidia.com/deploy/nvml-api.
"""

import contextlib
import ctypes
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from scalesweep.compute.power.domains import Domain, Meter, Reading, Sources

LIBRARY = "libnvidia-ml.so.1"
_DRIVER = "/dev/nvidiactl"
# nvidia-smi prints at most so many seconds apart, so that its last line is no older than that.
_SMI_S = 0.25
_FIRST_LINE_S = 10.0


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


class SmiMeter(Meter):
    """One ``nvidia-smi`` that prints the power of all GPUs again and again.

    One process, because each start of the program loads the driver's library and may take a second
    of a core on a machine of several GPUs; this one sleeps in between.
    """

    def __init__(self, program: str, interval_s: float) -> None:
        super().__init__({})
        period_ms = round(1000 * min(_SMI_S, interval_s))
        query = "--query-gpu=index,pci.bus_id,power.draw"
        self._argv = [program, query, "--format=csv,noheader,nounits", f"-lms={period_ms}"]
        self._rest = b""
        self._process: subprocess.Popen[bytes] | None = None
        self.first: list[Reading] = []

    def start(self) -> None:
        """Start the program and wait for its first lines, which tell which GPUs there are."""
        self._process = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + _FIRST_LINE_S
        while not self.first and (left := deadline - time.monotonic()) > 0:
            if not self.files() or not select.select(self.files(), [], [], left)[0]:
                break
            self.first = list(self.receive())

    def files(self) -> list[int]:
        """The program's output, until it ends."""
        out = self._process.stdout if self._process else None
        return [] if out is None or out.closed else [out.fileno()]

    def sample(self) -> Iterator[Reading]:
        """Nothing but the first values: others come when they come."""
        yield from self.first
        self.first = []

    def receive(self) -> Iterator[Reading]:
        """Powers in the lines that have arrived."""
        assert self._process is not None and self._process.stdout is not None
        content = os.read(self._process.stdout.fileno(), 65536)
        if not content:
            self._process.stdout.close()
            now = time.time()
            self.lost |= {domain.name: (now, "nvidia-smi has ended") for domain in self.domains}
        *lines, self._rest = (self._rest + content).split(b"\n")
        now, clock = time.time(), time.monotonic()
        for line in lines:
            words = [word.strip() for word in line.decode("ascii", "replace").split(",")]
            if len(words) != 3 or not words[0].isdecimal():
                continue
            name = f"nvidia-smi:gpu{words[0]}"
            try:
                watts = float(words[2])
            except ValueError:  # [N/A]
                continue
            if all(domain.name != name for domain in self.domains):
                device = words[1].lower()[-12:]
                self.domains.append(Domain(name, "nvidia-smi", "gpu", "power", 1.0, device=device))
            yield Reading(name, now, clock, watts)

    def close(self) -> Iterator[Reading]:
        """The next lines, which are a quarter of a second away at most; then end the program."""
        if self._process is None:
            return
        if self.files() and select.select(self.files(), [], [], 2 * _SMI_S)[0]:
            yield from self.receive()
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
