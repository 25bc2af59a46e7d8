"""The sampler as a program of its own, on a made sysfs tree."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.power.energy import read_host
from tests.conftest import ROOT
from tests.fakes.sysfs import RANGE, Rising, deny, described, write, zone

SAMPLER = ROOT / "scalesweep" / "compute" / "power" / "sampler.py"
INTERVAL_S = 0.05


class Running:
    """A sampler that has said ``ready``."""

    def __init__(self, sysfs: Path, out: Path, *words: str) -> None:
        out.mkdir(exist_ok=True)
        self.out = out
        command = [
            sys.executable,
            "-I",
            "-S",
            SAMPLER,
            "--out",
            out,
            "--sysfs",
            sysfs,
            "--host",
            "n1",
        ]
        command += ["--interval", str(INTERVAL_S), "--sources", "rapl,pm_counters,hwmon", *words]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()

    def end(self) -> dict[str, Any]:
        """Close its input and wait; what it has left."""
        out, err = self.process.communicate(timeout=20)
        assert (out, err, self.process.returncode) == ("", "", 0)
        return described(self.out)

    def wait_for(self, rows: int) -> None:
        deadline = time.monotonic() + 20
        while len((self.out / "power-n1.csv").read_text().splitlines()) < rows:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    return zone(tmp_path / "sys", "intel-rapl:0", "package-0", 1_000)


@pytest.fixture
def running(tmp_path: Path, counter: Path) -> Iterator[Running]:
    sampler = Running(tmp_path / "sys", tmp_path / "out")
    yield sampler
    sampler.process.kill()


@pytest.mark.measured
@pytest.mark.slow
def test_it_measures_what_the_counters_count(tmp_path: Path) -> None:
    package = zone(tmp_path / "sys", "intel-rapl:0", "package-0")
    dram = zone(tmp_path / "sys", "intel-rapl:0/intel-rapl:0:0", "dram")
    # Both wrap on the way.
    with Rising({package: 80.0, dram: 60.0}, start=RANGE - 60_000_000) as rising:
        sampler = Running(tmp_path / "sys", tmp_path / "out")
        time.sleep(2)
        said = sampler.end()
    host = read_host(tmp_path / "out" / "power-n1.json")
    text = (tmp_path / "out" / "power-n1.csv").read_text().splitlines()
    clocks = [float(line.split(",")[1]) for line in text[1:]]
    for path, name in ((package, "rapl:package-0"), (dram, "rapl:package-0/dram")):
        series = host.series[name]
        values = [line.split(",")[3] for line in text if f",{name}," in line]
        assert not series.gaps and int(values[-1]) < int(values[0])
        wanted = rising.between(path, clocks[0], clocks[-1])
        assert series.joules[-1] == pytest.approx(wanted, abs=rising.doubt(path))
    assert said["samples"] > 10 and said["cpu_s"] > 0 and said["ended"] == "end of input"
    assert not said["lost"] and not said["refused"] and said["missing"] is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_ends_it_after_a_last_sample(running: Running, number: int, counter: Path) -> None:
    running.wait_for(3)
    write(counter, 123_456)
    running.process.send_signal(number)
    assert running.process.wait(20) == 0
    assert described(running.out)["ended"] == "signal"
    assert (running.out / "power-n1.csv").read_text().endswith(",123456\n")


@pytest.mark.slow
def test_it_ends_with_its_parent(tmp_path: Path, counter: Path) -> None:
    # Its input stays open: the grandparent holds the other end.
    out = tmp_path / "out"
    out.mkdir()
    reader, writer = os.pipe()
    command = [sys.executable, str(SAMPLER), "--out", str(out), "--sysfs", str(tmp_path / "sys")]
    command += ["--host", "n1", "--interval", "0.05", "--sources", "rapl"]
    code = "import subprocess, sys; subprocess.call(sys.argv[1:], stdin=0)"
    with subprocess.Popen(
        [sys.executable, "-c", code, *command], stdin=reader, stdout=subprocess.DEVNULL
    ) as parent:
        deadline = time.monotonic() + 20
        while not (out / "power-n1.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        parent.kill()
        while not described(out)["ended"] and time.monotonic() < deadline:
            time.sleep(0.05)
    os.close(reader)
    os.close(writer)
    assert described(out)["ended"] == "the parent process is gone"


def test_nothing_to_read_ends_it_at_once(tmp_path: Path) -> None:
    sampler = Running(tmp_path / "sys", tmp_path / "out")
    assert sampler.said == "nothing n1" and sampler.process.wait(20) == 0
    said = described(tmp_path / "out")
    assert said["missing"] == "no RAPL, pm_counters or hwmon counter on host n1"
    assert not (tmp_path / "out" / "power-n1.csv").exists() and said["domains"] == []


def test_what_is_denied_is_told_and_the_rest_is_read(tmp_path: Path, counter: Path) -> None:
    denied = zone(tmp_path / "sys", "intel-rapl:1", "package-1")
    deny(denied)
    sampler = Running(tmp_path / "sys", tmp_path / "out")
    sampler.wait_for(3)
    said = sampler.end()
    assert said["refused"] == {str(denied): os.strerror(40)}
    assert [domain["name"] for domain in said["domains"]] == ["rapl:package-0"]


@pytest.mark.measured
def test_a_counter_that_vanishes_ends_its_series(tmp_path: Path, counter: Path) -> None:
    other = zone(tmp_path / "sys", "intel-rapl:1", "package-1")
    sampler = Running(tmp_path / "sys", tmp_path / "out")
    sampler.wait_for(5)
    other.unlink()
    gone = time.time()
    time.sleep(0.5)
    said = sampler.end()
    at, why = said["lost"]["rapl:package-1"]
    assert why == "No such file or directory" and gone - 5 < at < gone + 0.1
    host = read_host(tmp_path / "out" / "power-n1.json")
    assert host.series["rapl:package-1"].times[-1] < host.series["rapl:package-0"].times[-1] - 0.3


def test_a_sampler_that_is_killed_leaves_what_it_has_read(running: Running) -> None:
    running.wait_for(6)
    running.process.kill()
    running.process.wait()
    host = read_host(running.out / "power-n1.json")
    assert len(host.series["rapl:package-0"].times) >= 5
