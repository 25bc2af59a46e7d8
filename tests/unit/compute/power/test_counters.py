"""Power: counters that are there are read, the others say why; the launcher and its sampler, with a
real program beside a made sysfs tree."""

import csv
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.compute.power import counters
from scalesweep.compute.power.counters import POWER_SOURCES, Domain, Read, find, nothing_here
from scalesweep.core.record import read_record
from tests.conftest import ROOT
from tests.fakes.sysfs import RANGE, deny, samplers, write, zone
from tests.soak.launching import order, start, wait_until

FILES = ["rapl", "pm_counters", "hwmon"]


def found_in(root: Path, *sources: str) -> tuple[dict[Domain, Read], dict[str, str]]:
    return find(str(root), sources or FILES)


def table(readers: dict[Domain, Read]) -> dict[str, tuple[str, str, float]]:
    return {d.name: (d.part, d.kind, read()) for d, read in readers.items()}


def test_zones_of_rapl(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core")
    zone(tmp_path, "intel-rapl:1", "package-1")
    zone(tmp_path, "intel-rapl:1:0", "dram", 7_000_000, 65_712_999_613)
    zone(tmp_path, "intel-rapl:2", "psys")
    zone(tmp_path, "intel-rapl-mmio:0", "package-0")
    (tmp_path / "class/powercap/intel-rapl").mkdir()
    readers, refused = found_in(tmp_path)
    assert table(readers) == {
        "rapl:package-0": ("package", "counter", 5),
        "rapl:package-0/core": ("core", "counter", 0),
        "rapl:package-1": ("package", "counter", 0),
        "rapl:package-1/dram": ("dram", "counter", 7),
        "rapl:psys": ("psys", "counter", 0),
    }
    wraps = {domain.name: domain.wrap for domain in readers}
    assert wraps["rapl:package-0"] == pytest.approx(RANGE / 1e6)
    assert wraps["rapl:package-1/dram"] == pytest.approx(65_712.999613) and not refused


def test_pm_counters_and_gpus_in_hwmon(tmp_path: Path) -> None:
    texts = {
        "power": "245 W 1582312345678901 us", "energy": "1234567 J 1582312345678901 us",
        "cpu_power": "99 W 1582312345678901 us", "memory_power": "20 W",
        "accel0_power": "55 W 1582312345678901 us", "accel0_energy": "77 J 1582312345678901 us",
        "accel1_energy": "broken", "power_cap": "0 W 1582312345678901 us", "freshness": "42",
    }  # fmt: skip
    for name, text in texts.items():
        write(tmp_path / "cray" / "pm_counters" / name, text)
    chips = {
        "hwmon1": {"name": "power_meter", "power1_average": 250_000_000},
        "hwmon2": {"name": "amdgpu", "power1_input": 31_000_000, "power1_average": 30_000_000},
        "hwmon3": {"name": "xe", "energy1_input": 5_000_000, "power1_input": 4},
    }
    for chip, files in chips.items():
        for name, content in files.items():
            write(tmp_path / "class" / "hwmon" / chip / name, content)
    readers, refused = found_in(tmp_path)
    assert table(readers) == {
        "pm_counters:node": ("node", "counter", 1_234_567),
        "pm_counters:cpu": ("package", "power", 99),
        "pm_counters:memory": ("dram", "power", 20),
        "pm_counters:accel0": ("gpu", "counter", 77),
        "hwmon:hwmon2/amdgpu": ("gpu", "power", 31),
        "hwmon:hwmon3/xe": ("gpu", "counter", 5),
    }
    assert [Path(path).name for path in refused] == ["accel1_energy"]


def test_what_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_DRIVER", str(tmp_path / "none"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    told = nothing_here(str(tmp_path), POWER_SOURCES, "n1")
    assert told == "host n1 has no counters of rapl, nvml, pm_counters, hwmon"
    denied = zone(tmp_path, "intel-rapl:0", "package-0")
    deny(denied)
    write(zone(tmp_path, "intel-rapl:1", "package-1"), "-12 lots")
    zone(tmp_path, "intel-rapl:2", "package-2").unlink()
    readers, refused = found_in(tmp_path)
    why = list(refused.values())
    assert not readers and why[0] == os.strerror(40)  # ELOOP: root cannot be denied
    assert "-12 lots" in why[1] and why[2] == "No such file or directory"
    told = nothing_here(str(tmp_path), ["rapl"], "n1")
    assert f"{denied}: {why[0]}" in told and "and 2 more" in told
    assert nothing_here(str(tmp_path), ["hwmon"], "n1") == "host n1 has no counters of hwmon"
    zone(tmp_path, "intel-rapl:3", "package-3")
    assert nothing_here(str(tmp_path), POWER_SOURCES, "n1") is None


# NVML of two GPUs: of energy, of power only. As a library, because that is how it is called.
STUB = """
static long device[2];
int nvmlInit_v2(void) { return INIT; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = &device[i]; return i > 1 ? 4 : 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *h, unsigned long long *mj) {
    *mj = 123456789012000ULL;
    return h == &device[0] ? 0 : 3;
}
int nvmlDeviceGetPowerUsage(void *h, unsigned *mw) { *mw = h == &device[1] ? 70123 : 0; return 0; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_DRIVER", "/dev/null")
    (tmp_path / "stub.c").write_text(STUB)
    for code in (0, 9):
        library = tmp_path / f"libfake-{code}.so"
        words = ["gcc", f"-DINIT={code}", "-shared", "-fPIC", "-o", str(library)]
        subprocess.run([*words, str(tmp_path / "stub.c")], check=True)
    monkeypatch.setattr(counters, "LIBRARY", str(tmp_path / "libfake-0.so"))
    readers, refused = found_in(tmp_path, "nvml")
    assert table(readers) == {
        "nvml:gpu0": ("gpu", "counter", pytest.approx(123456789012)),
        "nvml:gpu1": ("gpu", "power", pytest.approx(70.123)),
    }
    assert refused == {"nvml:gpu2": "nvmlDeviceGetHandleByIndex_v2 gives error 4"}
    monkeypatch.setattr(counters, "LIBRARY", str(tmp_path / "libfake-9.so"))
    assert found_in(tmp_path, "nvml")[1] == {"nvml": "nvmlInit gives error 9"}
    monkeypatch.setattr(counters, "LIBRARY", "libno-such-thing.so.1")
    assert "libno-such-thing" in found_in(tmp_path, "nvml")[1]["nvml"]


# --- the launcher and its sampler ---

RUN_ID = "toy-r1-0123456789ab"
# A program of our own with two phases, in the middle of which it counts 90 and 60 J itself.
PROGRAM = """
import json, sys, time
from pathlib import Path
out = Path(json.loads(Path(sys.argv[1]).read_text())["out"])
spans = []
for name, joules in (("training", 90), ("evaluation", 150)):
    begin = time.time()
    time.sleep(SECONDS)
    for counter in Path("SYS").glob("class/powercap/*/energy_uj"):
        counter.with_name("new").write_text(f"{joules}000000")
        counter.with_name("new").replace(counter)
    time.sleep(SECONDS)
    spans.append([name, begin, time.time()])
native = dict.fromkeys(("phases", "metrics", "notes"), {}) | {
    "phase_spans": spans, "work": {"samples": 100, "phases": ["training"]},
    "resources": {"hosts": ["here"], "slurm_nodes": [None]},
    "environment": {"ranks": [], "versions": {}, "variables": {}},
}
(out / "native.json").write_text(json.dumps(native))
"""


def spec(tmp_path: Path, seconds: float = 0.01, **changes: Any) -> dict[str, Any]:
    script = PROGRAM.replace("SYS", str(tmp_path / "sys")).replace("SECONDS", str(seconds))
    power = {"interval_s": 0.1, "sources": ["rapl", "hwmon"], "nodes": 1}
    power["sysfs"] = str(tmp_path / "sys")
    changes = {"power": power | changes.pop("power", {}), **changes}
    return order(tmp_path / RUN_ID, changes.pop("script", script), **changes)


@pytest.mark.measured
def test_a_record_has_the_energy_that_the_counters_counted(tmp_path: Path) -> None:
    zone(tmp_path / "sys", "intel-rapl:0", "package-0")
    zone(tmp_path / "sys", "intel-rapl:0:0", "core")
    assert launch(spec(tmp_path, 0.4), ROOT) == 0
    record = read_record(tmp_path / RUN_ID / "record.json")
    energy = record["energy"]
    assert energy["missing"] is None and energy["sources"] == ["rapl"]
    assert energy["seconds"] == pytest.approx(record["wall_s"], abs=0.1)
    (domains,) = energy["domains"].values()
    whole, part = (domains[f"rapl:package-0{name}"] for name in ("", "/core"))
    assert whole["counted"] and not part["counted"] and whole["joules"] == energy["joules"]
    assert energy["phases"] == pytest.approx({"training": 90, "evaluation": 60})
    assert energy["sampler_cpu_s"] > 0 and energy["samples"] > 10
    values = {name: metric["value"] for name, metric in record["metrics"].items()}
    assert values == pytest.approx({
        "energy": 150, "energy_per_sample": 0.9, "energy_delay_product": 150 * record["wall_s"],
        "mean_power": 150 / energy["seconds"], "peak_power": energy["peak_watts"],
    })  # fmt: skip
    with (tmp_path / RUN_ID / "power.csv").open(newline="") as file:
        rows = {(row["host"], row["domain"]) for row in csv.DictReader(file)}
    (host,) = energy["hosts"]
    assert rows == {(host, "rapl:package-0"), (host, "rapl:package-0/core")}
    assert not samplers(tmp_path)


@pytest.mark.parametrize(
    ("counter", "power", "missing"),
    [
        ("", {"sources": ["rapl"]}, " has no counters of rapl"),
        ("there", None, "switched off (power: off)"),
        ("there", {"nodes": 2}, "the run takes 2 nodes"),
    ],
)
def test_what_cannot_be_measured_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counter: str, power: Any, missing: str
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    old = write(tmp_path / RUN_ID / "power.csv", "time,host,domain,watts")
    if counter:
        zone(tmp_path / "sys", "intel-rapl:0", "package-0")
    asked = spec(tmp_path, power=power or {})
    assert launch(asked if power is not None else asked | {"power": None}, ROOT) == 0
    record = read_record(tmp_path / RUN_ID / "record.json")
    assert record["energy"]["joules"] is None and record["metrics"] == {}
    assert missing in record["energy"]["missing"] and not old.exists()
    assert not list((tmp_path / RUN_ID / "attempt-1").glob("power*"))


def test_a_launcher_that_is_killed_leaves_no_sampler(tmp_path: Path) -> None:
    zone(tmp_path / "sys", "intel-rapl:0", "package-0")
    program = f"import time; open({str(tmp_path / 'on')!r}, 'w'); time.sleep(600)"
    launcher = start(spec(tmp_path, script=program))
    wait_until((tmp_path / "on").exists, "the program's start")
    assert len(samplers(tmp_path)) == 1
    launcher.kill()
    launcher.communicate(timeout=30)
    wait_until(lambda: not samplers(tmp_path), "the end of the sampler")
