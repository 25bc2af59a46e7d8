"""The launcher and its sampler: a real program beside a made sysfs tree."""

import csv
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.core.record import read_record
from tests.conftest import ROOT
from tests.fakes.sysfs import samplers, write, zone
from tests.soak.launching import order, start, wait_until

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
