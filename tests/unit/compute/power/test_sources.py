"""What a machine can be read by is found, and what cannot be read says why."""

import os
import shutil
import stat
import subprocess
import time
from ctypes import c_uint
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.power import gpu
from scalesweep.compute.power.domains import POWER_SOURCES, Domain, Meter, Sources
from scalesweep.compute.power.sources import nothing_here
from scalesweep.compute.power.sysfs import find_hwmon, find_pm_counters, find_rapl
from tests.fakes.sysfs import RANGE, deny, write, zone


def parts(found: Sources) -> dict[str, str]:
    return {domain.name: domain.part for domain in found.readers}


def value(found: Sources, name: str) -> float:
    (read,) = [read for domain, read in found.readers.items() if domain.name == name]
    return read()


def test_zones_of_rapl(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    zone(tmp_path, "intel-rapl:0/intel-rapl:0:0", "core")
    zone(tmp_path, "intel-rapl:0/intel-rapl:0:1", "dram", 7, 65_712_999_613)
    zone(tmp_path, "intel-rapl:1", "package-1")
    zone(tmp_path, "intel-rapl:1/intel-rapl:1:0", "dram")
    zone(tmp_path, "intel-rapl:2", "psys")
    zone(tmp_path, "intel-rapl-mmio:0", "package-0")
    # As in the real tree, each subzone also has a link beside its parent.
    folder = tmp_path / "class" / "powercap"
    (folder / "intel-rapl:0:1").symlink_to(folder / "intel-rapl:0" / "intel-rapl:0:1")
    (folder / "intel-rapl" / "enabled").parent.mkdir()
    found = find_rapl(str(tmp_path))
    assert parts(found) == {
        "rapl:package-0": "package",
        "rapl:package-1": "package",
        "rapl:psys": "psys",
        "rapl:package-0/core": "core",
        "rapl:package-0/dram": "dram",
        "rapl:package-1/dram": "dram",
    }
    assert value(found, "rapl:package-0") == 5 and value(found, "rapl:package-0/dram") == 7
    wraps = {domain.name: domain.wrap for domain in found.readers}
    assert wraps["rapl:package-0"] == RANGE and wraps["rapl:package-0/dram"] == 65_712_999_613
    assert not found.refused


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    denied = zone(tmp_path, "intel-rapl:0", "package-0")
    deny(denied)
    write(zone(tmp_path, "intel-rapl:1", "package-1"), "-12 lots")
    zone(tmp_path, "intel-rapl:2", "package-2").unlink()
    found = find_rapl(str(tmp_path))
    assert not found.readers
    why = list(found.refused.values())
    assert why[0] == os.strerror(40)  # ELOOP stands for what root cannot be denied
    assert "-12 lots" in why[1] and why[2] == "No such file or directory"
    told = nothing_here(str(tmp_path), ["rapl"], "n1")
    assert told is not None and f"{denied}: {why[0]}" in told and "and 2 more" in told


def test_pm_counters(tmp_path: Path) -> None:
    texts = {
        "power": "245 W 1582312345678901 us",
        "energy": "1234567 J 1582312345678901 us",
        "cpu_power": "99 W 1582312345678901 us",
        "memory_power": "20 W",
        "accel0_power": "55 W 1582312345678901 us",
        "accel0_energy": "77 J 1582312345678901 us",
        "accel1_energy": "broken",
        "power_cap": "0 W 1582312345678901 us",
        "freshness": "42",
        "version": "2",
    }
    for name, text in texts.items():
        write(tmp_path / "cray" / "pm_counters" / name, text)
    found = find_pm_counters(str(tmp_path))
    kinds = {domain.name: (domain.part, domain.kind) for domain in found.readers}
    assert kinds == {
        "pm_counters:node": ("node", "counter"),
        "pm_counters:cpu": ("package", "power"),
        "pm_counters:memory": ("dram", "power"),
        "pm_counters:accel0": ("gpu", "counter"),
    }
    assert value(found, "pm_counters:node") == 1_234_567
    assert value(found, "pm_counters:cpu") == 99 and value(found, "pm_counters:memory") == 20
    assert [Path(path).name for path in found.refused] == ["accel1_energy"]


def test_hwmon(tmp_path: Path) -> None:
    device = tmp_path / "devices" / "pci0000:00" / "0000:c1:00.0"
    device.mkdir(parents=True)
    chips: dict[str, dict[str, Any]] = {
        "hwmon1": {"name": "power_meter", "power1_average": 250_000_000},
        "hwmon2": {
            "name": "amdgpu", "power1_input": 31_000_000, "power1_average": 30_000_000,
            "power1_cap": 9, "freq1_input": 1,
        },
        "hwmon3": {"name": "xe", "energy1_input": 5, "power1_input": 4},
    }  # fmt: skip
    for chip, files in chips.items():
        for name, content in files.items():
            write(tmp_path / "class" / "hwmon" / chip / name, content)
    (tmp_path / "class" / "hwmon" / "hwmon2" / "device").symlink_to(device)
    found = find_hwmon(str(tmp_path))
    assert parts(found) == {"hwmon:hwmon2/amdgpu": "gpu", "hwmon:hwmon3/xe": "gpu"}
    assert value(found, "hwmon:hwmon2/amdgpu") == 31_000_000
    assert [domain.device for domain in found.readers] == ["0000:c1:00.0", ""]
    assert [domain.kind for domain in found.readers] == ["power", "counter"]


def test_nothing_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "possible", lambda: False)
    told = nothing_here(str(tmp_path), POWER_SOURCES, "n1")
    assert told == "no RAPL, NVML, pm_counters or hwmon counter on host n1"
    assert nothing_here(str(tmp_path), ["rapl"], "n1") == "no RAPL counter on host n1"
    zone(tmp_path, "intel-rapl:0", "package-0")
    assert nothing_here(str(tmp_path), POWER_SOURCES, "n1") is None
    assert nothing_here(str(tmp_path), ["hwmon"], "n1") == "no hwmon counter on host n1"


def test_a_meter_leaves_alone_what_fails_again_and_again(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 1)
    other = zone(tmp_path, "intel-rapl:1", "package-1", 2)
    meter, began = Meter(find_rapl(str(tmp_path)).readers), time.time()
    assert [reading.value for reading in meter.sample()] == [1, 2]
    counter.unlink()
    assert [reading.value for reading in meter.sample()] == [2]
    assert meter.lost["rapl:package-0"][1] == "No such file or directory"
    write(counter, 5)  # it was only being replaced
    assert [reading.value for reading in meter.sample()] == [5, 2] and not meter.lost
    write(other, "garbage")
    for _ in range(3):
        assert [reading.domain for reading in meter.sample()] == ["rapl:package-0"]
    write(other, 3)
    assert [reading.domain for reading in meter.sample()] == ["rapl:package-0"]
    at, why = meter.lost["rapl:package-1"]
    assert began <= at <= time.time() and "garbage" in why


class FakeNvml:
    """NVML of three GPUs: energy, power only, and one that is not ours."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.millijoules = 5_000

    def nvmlInit_v2(self) -> int:
        return self.code

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = 3
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: c_uint, handle: Any) -> int:
        handle._obj.value = 100 + index.value
        return 4 if index.value == 2 else 0

    def nvmlDeviceGetPciInfo_v3(self, handle: Any, info: Any) -> int:
        info._obj.busId = f"0000000{handle.value - 100}:3B:00.0".encode()
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, total: Any) -> int:
        total._obj.value = self.millijoules
        return 3 if handle.value == 101 else 0

    def nvmlDeviceGetPowerUsage(self, handle: Any, power: Any) -> int:
        power._obj.value = 70_000
        return 0


def test_nvml() -> None:
    library = FakeNvml()
    found = gpu.find_nvml(library)
    (first, read), (second, power) = found.readers.items()
    assert first == Domain("nvml:gpu0", "nvml", "gpu", "counter", 1e-3, device="0000:3b:00.0")
    assert second == Domain("nvml:gpu1", "nvml", "gpu", "power", 1e-3, device="0001:3b:00.0")
    assert read() == 5_000 and power() == 70_000
    library.millijoules = 6_000
    assert read() == 6_000
    assert found.refused == {"nvml:gpu2": "[Errno 4] nvmlDeviceGetHandleByIndex_v2 gives error 4"}


def test_nvml_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu.find_nvml(FakeNvml(9)).refused == {"NVML": "[Errno 9] nvmlInit gives error 9"}
    monkeypatch.setattr(gpu, "LIBRARY", "libno-such-thing.so.1")
    found = gpu.find_nvml()
    assert not found.readers and "libno-such-thing" in found.refused["NVML"]


STUB = """
#include <string.h>
typedef struct { char legacy[16]; unsigned numbers[5]; char bus_id[32]; } Pci;
static long device[2];
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = &device[i]; return 0; }
int nvmlDeviceGetPciInfo_v3(void *h, Pci *info) {
    memset(info, 255, sizeof *info);
    strcpy(info->bus_id, h == &device[0] ? "00000000:3B:00.0" : "00000000:5E:00.0");
    return sizeof *info == 68 ? 0 : 1;
}
int nvmlDeviceGetTotalEnergyConsumption(void *h, unsigned long long *mj) {
    *mj = 123456789012345ULL;
    return h == &device[0] ? 0 : 3;
}
int nvmlDeviceGetPowerUsage(void *h, unsigned *mw) { *mw = h == &device[1] ? 70123 : 0; return 0; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_nvml_as_a_real_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stub.c").write_text(STUB)
    library = tmp_path / "libfake-nvml.so"
    words = ["gcc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "stub.c")]
    subprocess.run(words, check=True)
    monkeypatch.setattr(gpu, "LIBRARY", str(library))
    found = gpu.find_nvml()
    assert [(d.name, d.kind, d.device) for d in found.readers] == [
        ("nvml:gpu0", "counter", "0000:3b:00.0"), ("nvml:gpu1", "power", "0000:5e:00.0"),
    ]  # fmt: skip
    assert [read() for read in found.readers.values()] == [123456789012345, 70123]


def test_no_source_needs_more_than_the_standard_library() -> None:
    folder = Path(gpu.__file__).parent
    code = "import sys; sys.path.insert(0, sys.argv[1]); import scalesweep.compute.power_sampling"
    root = str(folder.parents[2])
    subprocess.run(["python3", "-I", "-S", "-c", code, root], check=True, cwd="/")
    assert not any(path.stat().st_mode & stat.S_IXUSR for path in folder.glob("*.py"))
