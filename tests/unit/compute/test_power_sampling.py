"""The launcher and its sampler: a real program beside a made sysfs tree."""

import csv
import os
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.core.record import read_record
from tests.conftest import ROOT
from tests.fakes.sysfs import Rising, deny, samplers, write, zone
from tests.soak.launching import order, start, wait_until

RUN_ID = "toy-r1-0123456789ab"
# A program of our own with two phases of known times.
PROGRAM = """
import json, sys, time
from pathlib import Path
out = Path(json.loads(Path(sys.argv[1]).read_text())["out"])
spans = []
for name, seconds in (("training", 0.9), ("evaluation", 0.6)):
    begin = time.time()
    time.sleep(seconds)
    spans.append([name, begin, time.time()])
native = dict.fromkeys(("phases", "metrics", "notes"), {}) | {
    "phase_spans": spans, "work": {"samples": 100, "phases": ["training"]},
    "resources": {"hosts": ["here"], "slurm_nodes": [None]},
    "environment": {"ranks": [], "versions": {}, "variables": {}},
}
(out / "native.json").write_text(json.dumps(native))
"""
# For those that ask for no energy of its phases.
BRIEF = PROGRAM.replace("0.9", "0.02").replace("0.6", "0.02")


def spec(tmp_path: Path, script: str = PROGRAM, **changes: Any) -> dict[str, Any]:
    power = {"interval_s": 0.1, "sources": ["rapl", "hwmon"], "nodes": 1}
    power["sysfs"] = str(tmp_path / "sys")
    return order(tmp_path / RUN_ID, script, power=power | changes.pop("power", {}), **changes)


def record_of(tmp_path: Path) -> dict[str, Any]:
    return read_record(tmp_path / RUN_ID / "record.json")


def power_rows(tmp_path: Path) -> list[dict[str, str]]:
    with (tmp_path / RUN_ID / "power.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.measured
@pytest.mark.slow
def test_a_record_has_the_energy_that_the_counters_counted(tmp_path: Path) -> None:
    package = zone(tmp_path / "sys", "intel-rapl:0", "package-0")
    core = zone(tmp_path / "sys", "intel-rapl:0:0", "core")
    with Rising({package: 150.0, core: 100.0}) as rising:
        before = time.monotonic()
        assert launch(spec(tmp_path), ROOT) == 0
        after = time.monotonic()
    record = record_of(tmp_path)
    energy = record["energy"]
    assert energy["missing"] is None and energy["sources"] == ["rapl"] and len(energy["hosts"]) == 1
    assert energy["seconds"] == pytest.approx(record["wall_s"], abs=0.1)
    # The thread that counts may be late on a busy machine, so its own counts are the measure.
    (domains,) = energy["domains"].values()
    whole, part = (domains[f"rapl:package-0{name}"] for name in ("", "/core"))
    assert whole["counted"] and not part["counted"] and whole["joules"] == energy["joules"]
    assert energy["joules"] < rising.between(package, before, after) + rising.doubt(package)
    begin, end = (datetime.fromisoformat(record[key]).timestamp() for key in ("started", "ended"))
    offset = time.time() - time.monotonic()
    wanted = rising.between(package, begin - offset, end - offset)
    assert energy["joules"] == pytest.approx(wanted, abs=rising.doubt(package))
    assert energy["mean_watts"] == pytest.approx(energy["joules"] / energy["seconds"])
    assert energy["peak_watts"] >= energy["mean_watts"] * 0.99
    assert energy["sampler_cpu_s"] > 0 and energy["samples"] > 10
    for name, begun, stop in record["phase_spans"]:
        wanted = rising.between(package, begun - offset, stop - offset)
        assert energy["phases"][name] == pytest.approx(wanted, abs=rising.doubt(package))
    values = {name: metric["value"] for name, metric in record["metrics"].items()}
    assert values == {
        "energy": energy["joules"],
        "energy_per_sample": pytest.approx(energy["phases"]["training"] / 100),
        "energy_delay_product": pytest.approx(energy["joules"] * record["wall_s"]),
        "mean_power": energy["mean_watts"],
        "peak_power": energy["peak_watts"],
    }
    rows = power_rows(tmp_path)
    assert {row["domain"] for row in rows} == {"rapl:package-0", "rapl:package-0/core"}
    assert {row["host"] for row in rows} == set(energy["hosts"])
    assert not samplers(tmp_path)


@pytest.mark.parametrize(
    ("counter", "power", "missing"),
    [
        ("", {"sources": ["rapl"]}, " has no counters of rapl"),
        ("denied", {}, f"energy_uj: {os.strerror(40)}"),
        ("there", None, "switched off (power: off)"),
        ("there", {"nodes": 2}, "the run takes 2 nodes"),
    ],
)
def test_what_cannot_be_measured_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counter: str, power: Any, missing: str
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    old = write(tmp_path / RUN_ID / "power.csv", "time,host,domain,watts")
    path = zone(tmp_path / "sys", "intel-rapl:0", "package-0") if counter else None
    if path and counter == "denied":
        deny(path)
    asked = spec(tmp_path, BRIEF, power=power or {})
    assert launch(asked if power is not None else asked | {"power": None}, ROOT) == 0
    record = record_of(tmp_path)
    assert record["energy"]["joules"] is None and record["metrics"] == {}
    assert missing in record["energy"]["missing"] and not old.exists()
    assert not list((tmp_path / RUN_ID / "attempt-1").glob("power*"))


def test_a_launcher_that_is_killed_leaves_no_sampler(tmp_path: Path) -> None:
    zone(tmp_path / "sys", "intel-rapl:0", "package-0")
    program = f"import time; open({str(tmp_path / 'on')!r}, 'w'); time.sleep(600)"
    launcher = start(spec(tmp_path, program))
    wait_until((tmp_path / "on").exists, "the program's start")
    assert len(samplers(tmp_path)) == 1
    launcher.kill()
    launcher.communicate(timeout=30)
    wait_until(lambda: not samplers(tmp_path), "the end of the sampler")
