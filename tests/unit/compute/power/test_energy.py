"""Joules from values: against closed forms, over wraps, gaps, phases and clocks that are moved."""

import json
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.power.domains import Domain
from scalesweep.compute.power.energy import counted, energy_of, power_rows, read_host
from scalesweep.compute.power.outcome import energy_metrics, nothing
from scalesweep.compute.power.series import series_of
from tests.fakes.sysfs import RANGE

PACKAGE = Domain("rapl:package-0", "rapl", "package", "counter", 1e-6, RANGE)
SENSOR = Domain("pm_counters:node", "pm_counters", "node", "power", 1e-6)
FREE = Domain("nvml:gpu0", "nvml", "gpu", "counter", 1e-3)
START = 1_700_000_000.0


def joules(domain: Domain, values: list[tuple[float, float]]) -> float:
    series = series_of(domain, values, 1.0)
    assert not series.gaps
    return series.joules[-1]


def test_constant_power_from_a_counter_and_from_a_sensor() -> None:
    times = [0.0, 0.4, 1.0, 2.5, 3.0]
    assert joules(PACKAGE, [(t, round(40e6 * t)) for t in times]) == pytest.approx(120)
    assert joules(SENSOR, [(t, 40_000_000) for t in times]) == pytest.approx(120)


def test_the_trapezoid_is_exact_for_a_ramp() -> None:
    # P(t) = 10 + 5 t, so E(4) = 10 * 4 + 5 * 16 / 2, whatever the times of the samples.
    times = [0.0, 0.3, 1.0, 1.1, 2.7, 4.0]
    assert joules(SENSOR, [(t, (10 + 5 * t) * 1e6) for t in times]) == pytest.approx(80)


def test_a_counter_that_wraps_once() -> None:
    values = [(t, (RANGE - 50_000_000 + 100_000_000 * t) % RANGE) for t in range(4)]
    assert values[0][1] > values[1][1]
    series = series_of(PACKAGE, values, 1.0)
    assert series.joules == pytest.approx([0, 100, 200, 300])
    assert series.watts == [None, *[pytest.approx(100)] * 3]


def test_a_counter_that_may_have_wrapped_more_than_once_is_refused() -> None:
    # 262 kJ at up to 2 kW: after 300 s nobody can tell, whether it stands higher or lower.
    for value in (150_000_000, 50_000_000):
        series = series_of(PACKAGE, [(0, 100_000_000), (300, value), (301, value + 7)], 1.0)
        (gap,) = series.gaps
        assert (gap.start, gap.end) == (0, 300) and "several times" in gap.why
        assert series.joules[-1] == pytest.approx(7e-6)
        assert series.known_s(0, 301) == pytest.approx(1)
    assert not series_of(PACKAGE, [(0, RANGE - 10), (120, 50_000_000)], 1.0).gaps


@pytest.mark.parametrize(
    ("domain", "values", "why"),
    [
        # 260 kJ in a second is no wrap: the driver was loaded anew.
        (PACKAGE, [5_000_000_000, 100], "set back"),
        (FREE, [5_000_000, 100], "set back"),
        (FREE, [0, 9_000_000], "jumped"),
    ],
)
def test_a_counter_that_was_set_back_leaves_a_gap(
    domain: Domain, values: list[float], why: str
) -> None:
    series = series_of(domain, [(float(i), value) for i, value in enumerate(values)], 1.0)
    (gap,) = series.gaps
    assert why in gap.why and series.joules[-1] == 0 and series.watts[-1] is None


def test_a_sensor_that_was_silent_leaves_a_gap() -> None:
    series = series_of(SENSOR, [(0, 1e6), (1, 1e6), (9, 1e6), (10, 1e6)], 1.0)
    assert [(gap.start, gap.end) for gap in series.gaps] == [(1, 9)]
    assert series.joules[-1] == pytest.approx(2) and series.known_s(0, 10) == pytest.approx(2)


def names(*rows: tuple[str, str, str, str]) -> list[Domain]:
    return [Domain(name, source, part, "counter", 1.0, None, at) for name, source, part, at in rows]


CPU = (("p0", "rapl", "package", ""), ("p1", "rapl", "package", ""), ("d0", "rapl", "dram", ""),
       ("c0", "rapl", "core", ""), ("u0", "rapl", "uncore", ""))  # fmt: skip
GPU = (("g0", "nvml", "gpu", "0000:3b:00.0"), ("g1", "nvml", "gpu", "0000:5e:00.0"))
PSYS = ("s", "rapl", "psys", "")
CRAY = (("n", "pm_counters", "node", ""), ("nc", "pm_counters", "package", ""),
        ("na", "pm_counters", "gpu", ""))  # fmt: skip


@pytest.mark.parametrize(
    ("domains", "wanted"),
    [
        (CPU, "p0 p1 d0"),
        ((*CPU, *GPU), "p0 p1 d0 g0 g1"),
        ((*CPU, *GPU, PSYS), "s g0 g1"),
        ((*CPU, *GPU, *CRAY), "n"),
        ((*CPU, *CRAY[1:]), "p0 p1 d0 na"),
        (CRAY[1:], "nc na"),
        ((*GPU, ("x", "hwmon", "gpu", "0000:3b:00.0")), "g0 g1"),
        ((*GPU, ("x", "hwmon", "gpu", "0000:c1:00.0")), "g0 g1 x"),
        ((*GPU, ("x", "hwmon", "gpu", "")), "g0 g1"),
        ((("x", "hwmon", "gpu", ""), ("y", "hwmon", "gpu", "")), "x y"),
        ((("d0", "rapl", "dram", ""),), "d0"),
    ],
)
def test_nothing_is_counted_twice(domains: tuple[Any, ...], wanted: str) -> None:
    found = names(*domains)
    chosen, _ = counted(
        found, {domain.name: 1000.0 if domain.name == "s" else 1.0 for domain in found}
    )
    assert chosen == set(wanted.split())


def test_a_psys_that_is_not_wired_is_left_out() -> None:
    found = names(*CPU, PSYS)
    chosen, said = counted(found, {domain.name: 1.0 for domain in found} | {"s": 0.5})
    assert chosen == {"p0", "p1", "d0"} and "psys" in said[0]


class Trace:
    """The files of a host: a package at constant watts beside a GPU whose power is a ramp."""

    def __init__(self, folder: Path, host: str = "n1", seconds: int = 10) -> None:
        self.folder, self.host = folder, host
        self.rows: list[tuple[float, float, str, Any]] = []
        for second in range(seconds + 1):
            at = START + second
            self.rows.append((at, 500.0 + second, "rapl:package-0", 60_000_000 * second))
            self.rows.append((at, 500.0 + second, "nvml:gpu0", (100 + 10 * second) * 1e3))
        self.domains = [PACKAGE, FREE._replace(kind="power")]
        self.more: dict[str, Any] = {}

    def write(self) -> Any:
        said = {
            "host": self.host, "interval_s": 1.0, "missing": None, "refused": {}, "lost": {},
            "domains": [domain._asdict() for domain in self.domains], "samples": 11, "cpu_s": 0.05,
        }  # fmt: skip
        path = self.folder / f"power-{self.host}.json"
        path.write_text(json.dumps(said | self.more))
        lines = [f"{t:.6f},{c:.6f},{name},{value!r}\n" for t, c, name, value in self.rows]
        path.with_suffix(".csv").write_text("time,clock,domain,value\n" + "".join(lines))
        return read_host(path)


WINDOW = (START, START + 10)
TOTAL = 60 * 10 + 100 * 10 + 10 * 100 / 2


def test_a_program(tmp_path: Path) -> None:
    energy = energy_of([Trace(tmp_path).write()], WINDOW)
    assert energy["missing"] is None and energy["joules"] == pytest.approx(TOTAL)
    assert energy["seconds"] == pytest.approx(10)
    assert energy["mean_watts"] == pytest.approx(TOTAL / 10)
    # The ramp's last interval.
    assert energy["peak_watts"] == pytest.approx(60 + 195)
    package = energy["domains"]["n1"]["rapl:package-0"]
    assert package == {"joules": pytest.approx(600), "counted": True, "seconds": pytest.approx(10)}
    assert energy["sources"] == ["nvml", "rapl"] and energy["phases"] == {}
    metrics = energy_metrics(energy, 12.0)
    assert metrics["energy_delay_product"]["value"] == pytest.approx(12 * TOTAL)
    assert metrics["energy"]["unit"] == "J" and "energy_per_sample" not in metrics


def test_a_window_between_samples_is_interpolated(tmp_path: Path) -> None:
    energy = energy_of([Trace(tmp_path).write()], (START + 2.5, START + 7.25))
    # In each interval the ramp is a straight line of energy: two edges, whole seconds between.
    ramp = [100 + 10 * (second + 0.5) for second in range(10)]
    gpu = 0.5 * ramp[2] + sum(ramp[3:7]) + 0.25 * ramp[7]
    assert energy["joules"] == pytest.approx(60 * 4.75 + gpu)


def test_phases(tmp_path: Path) -> None:
    spans = [
        ("import", START, START + 2), ("training", START + 2, START + 4.5),
        ("validation", START + 4.5, START + 5.5), ("training", START + 5.5, START + 8),
        ("blink", START + 8, START + 8.2), ("validation", START + 8.2, START + 9.2),
    ]  # fmt: skip
    work = {"samples": 1000, "phases": ["training", "validation"]}
    energy = energy_of([Trace(tmp_path).write()], WINDOW, spans, work)
    assert set(energy["phases"]) == {"import", "training", "validation"}  # blink is no interval
    assert energy["phases"]["import"] == pytest.approx(60 * 2 + 100 * 2 + 10 * 4 / 2)
    # Symmetric about 5 s, where the ramp is at 150 W.
    assert energy["phases"]["training"] == pytest.approx((60 + 150) * 5)
    assert energy["joules_per_sample"] == pytest.approx(
        (energy["phases"]["training"] + energy["phases"]["validation"]) / 1000
    )
    metrics = energy_metrics(energy, 10.0)
    assert metrics["energy_per_sample"]["value"] == energy["joules_per_sample"]


def test_a_phase_in_a_gap_is_missing_and_so_is_the_total(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    trace.rows = [row for row in trace.rows if not (row[2] == "nvml:gpu0" and row[1] > 506)]
    trace.more = {"lost": {"nvml:gpu0": [START + 6, "No such device"]}}
    energy = energy_of(
        [trace.write()], WINDOW, [("a", START, START + 5), ("b", START + 5, START + 10)]
    )
    assert energy["joules"] is None and energy["peak_watts"] is None
    assert energy["missing"] == "nvml:gpu0 of n1 is known for 6.0 of 10.0 s (No such device)"
    assert set(energy["phases"]) == {"a"} and energy_metrics(energy, 10.0) == {}
    # What is known stays told.
    assert energy["domains"]["n1"]["nvml:gpu0"]["seconds"] == pytest.approx(6)


def test_a_lost_domain_that_does_not_count_is_only_noted(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    core = PACKAGE._replace(name="rapl:package-0/core", part="core")
    trace.domains.append(core)
    trace.rows += [(START + s, 500.0 + s, core.name, s) for s in range(4)]
    energy = energy_of([trace.write()], WINDOW)
    assert energy["joules"] == pytest.approx(TOTAL)
    assert any(line.startswith(f"{core.name} of n1 is known for 3.0") for line in energy["notes"])


def test_hosts_add_up_and_all_must_tell(tmp_path: Path) -> None:
    both = [Trace(tmp_path, host).write() for host in ("n1", "n2")]
    energy = energy_of(both, WINDOW)
    assert energy["joules"] == pytest.approx(2 * TOTAL) and energy["hosts"] == ["n1", "n2"]
    assert energy["peak_watts"] == pytest.approx(2 * 255) and not energy["notes"]
    both[1].missing, both[1].domains, both[1].series = "no counter on host n2", {}, {}
    energy = energy_of(both, WINDOW, [("a", START, START + 5)])
    assert energy["joules"] is None and energy["missing"] == "no counter on host n2"
    assert energy["phases"] == {} and "hosts differ" in energy["notes"][0]


@pytest.mark.parametrize("part", ["dram", "package"])
def test_what_stands_still_measures_nothing(tmp_path: Path, part: str) -> None:
    trace = Trace(tmp_path)
    still = PACKAGE._replace(name="rapl:other", part=part)
    trace.domains.append(still)
    trace.rows += [(START + s, 500.0 + s, still.name, 4711) for s in range(11)]
    energy = energy_of([trace.write()], WINDOW)
    if part == "dram":  # of a processor that does not count it
        assert energy["joules"] == pytest.approx(TOTAL)
        assert energy["notes"] == ["n1: rapl:other does not change and is left out"]
        assert not energy["domains"]["n1"]["rapl:other"]["counted"]
    else:
        assert energy["joules"] is None and energy["missing"] == "rapl:other of n1 does not change"


def test_a_counter_that_stops_is_no_power(tmp_path: Path) -> None:
    """2.5 of 5.5 s counted are not the energy of all; nor is what was counted after a pause."""
    times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.5]
    curves = {
        "end": lambda t: min(t, 2.5), "begin": lambda t: max(t, 2.5),
        "middle": lambda t: t if t <= 2 else max(2.0, t - 2),
    }  # fmt: skip
    for place, curve in curves.items():
        trace = Trace(tmp_path)
        trace.domains = [PACKAGE]
        trace.rows = [
            (START + t, 500.0 + t, PACKAGE.name, round(100e6 * curve(t)) + 7) for t in times
        ]
        energy = energy_of([trace.write()], (START, START + 5.5))
        assert energy["joules"] is None, place
        assert "stood still for 2." in energy["missing"], place
        assert "does not change" not in energy["missing"]


def test_rows_of_power(tmp_path: Path) -> None:
    rows = power_rows([Trace(tmp_path).write()])
    assert len(rows) == 22 and rows == sorted(rows, key=lambda row: row[0])
    # Of the time before its first value a counter tells nothing; a sensor has its own.
    assert rows[0] == (START, "n1", "nvml:gpu0", 100.0)
    assert rows[1] == (START, "n1", "rapl:package-0", None)
    assert rows[3] == (START + 1, "n1", "rapl:package-0", pytest.approx(60))


def test_nothing_measured_gives_no_metrics() -> None:
    assert energy_metrics(nothing("switched off", None), 10.0) == {}
    assert energy_metrics(None, 10.0) == {}
