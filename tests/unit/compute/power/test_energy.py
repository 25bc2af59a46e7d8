"""Joules from values: against closed forms, over wraps, gaps and phases."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.compute.power import energy_metrics, nothing
from scalesweep.compute.power.counters import Domain
from scalesweep.compute.power.energy import Series, counted, energy_of, read_host
from scalesweep.compute.power.energy import series_of as series_from

RANGE = 262_143.0
PACKAGE = Domain("rapl:package-0", "rapl", "package", "counter", RANGE)
SENSOR = Domain("pm_counters:node", "pm_counters", "node", "power")
FREE = Domain("nvml:gpu0", "nvml", "gpu", "counter")
START = 1_700_000_000.0
Values = list[tuple[float, float]]


def series_of(domain: Domain, values: Values) -> Series:
    return series_from(domain, np.array(values, float), 1.0)


# The trapezoid is exact for a ramp: P(t) = 10 + 5 t, so E(4) = 10 * 4 + 5 * 16 / 2.
@pytest.mark.parametrize(
    ("domain", "values", "joules"),
    [
        (PACKAGE, [(t, 40 * t) for t in (0.0, 0.4, 1.0, 2.5, 3.0)], 120),
        (SENSOR, [(t, 40) for t in (0.0, 0.4, 1.0, 2.5, 3.0)], 120),
        (SENSOR, [(t, 10 + 5 * t) for t in (0.0, 0.3, 1.0, 1.1, 2.7, 4.0)], 80),
        (PACKAGE, [(t, (RANGE - 50 + 100 * t) % RANGE) for t in range(4)], 300),
        (PACKAGE, [(0, RANGE - 0.01), (120, 50)], 50.01),
    ],
)
def test_joules_of_counters_and_sensors(domain: Domain, values: Values, joules: float) -> None:
    series = series_of(domain, values)
    assert series.joules[-1] == pytest.approx(joules) and not series.why
    assert series.known_s(0, 1000) == pytest.approx(values[-1][0])


@pytest.mark.parametrize(
    ("domain", "values", "why"),
    [
        # 262 kJ at up to 2 kW: after 300 s nobody can tell, whether it stands higher or lower.
        (PACKAGE, [(0, 100), (300, 150)], "several times"),
        (PACKAGE, [(0, 100), (300, 50)], "several times"),
        # 260 kJ in a second is no wrap: the driver was loaded anew.
        (PACKAGE, [(0, 5000), (1, 0.1)], "set back"),
        (FREE, [(0, 5000), (1, 0.1)], "set back"),
        (FREE, [(0, 0), (1, 9000)], "jumped"),
        (SENSOR, [(0, 1), (9, 1)], "no value for a time"),
    ],
)
def test_what_is_not_known_is_a_gap(domain: Domain, values: Values, why: str) -> None:
    last, value = values[-1]
    series = series_of(domain, [*values, (last + 1, value + 7)])
    assert why in series.why and series.known_s(0, 1000) == pytest.approx(1)
    assert series.joules[-1] == pytest.approx(7 if domain.kind == "counter" else value + 3.5)


CPU = (("p0", "rapl", "package"), ("p1", "rapl", "package"), ("d0", "rapl", "dram"),
       ("c0", "rapl", "core"), ("u0", "rapl", "uncore"), ("s", "rapl", "psys"))  # fmt: skip
GPU = (("g0", "nvml", "gpu"), ("g1", "nvml", "gpu"))
CRAY = (("n", "pm_counters", "node"), ("nc", "pm_counters", "package"),
        ("na", "pm_counters", "gpu"))  # fmt: skip


@pytest.mark.parametrize(
    ("domains", "wanted"),
    [
        (CPU, "p0 p1 d0"),
        ((*CPU, *GPU), "p0 p1 d0 g0 g1"),
        ((*CPU, *GPU, *CRAY), "n"),
        ((*CPU, *GPU, *CRAY[1:]), "p0 p1 d0 g0 g1"),
        ((*CPU, *CRAY[1:]), "p0 p1 d0 na"),
        (CRAY[1:], "nc na"),
        ((*GPU, ("x", "hwmon", "gpu")), "g0 g1 x"),
    ],
)
def test_nothing_is_counted_twice(domains: tuple[tuple[str, str, str], ...], wanted: str) -> None:
    assert counted([Domain(*domain, "counter") for domain in domains]) == set(wanted.split())


# A package at constant watts beside a GPU whose power is a ramp.
DOMAINS = [PACKAGE, FREE._replace(kind="power")]
ROWS = [
    row
    for second in range(11)
    for row in ((second, PACKAGE.name, 60.0 * second), (second, FREE.name, 100.0 + 10 * second))
]


def traced(folder: Path, domains: Any = DOMAINS, rows: Any = ROWS, host: str = "n1") -> Any:
    """What is read of the files of a host."""
    said = {
        "host": host, "interval_s": 1.0, "missing": None, "refused": {}, "failed": {},
        "domains": domains, "samples": 11, "cpu_s": 0.05,
    }  # fmt: skip
    path = folder / f"power-{host}.json"
    path.write_text(json.dumps(said))
    lines = [f"{START + second:.6f},{name},{value!r}\n" for second, name, value in rows]
    path.with_suffix(".csv").write_text("time,domain,value\n" + "".join(lines) + "17000")
    return read_host(path)


WINDOW = (START, START + 10)
TOTAL = 60 * 10 + 100 * 10 + 10 * 100 / 2


def test_a_program(tmp_path: Path) -> None:
    energy = energy_of([traced(tmp_path)], 1, WINDOW)
    assert energy["missing"] is None and energy["samples"] == 11
    names = ("joules", "seconds", "mean_watts", "peak_watts")  # the last: in the ramp's last second
    assert [energy[name] for name in names] == pytest.approx([TOTAL, 10, TOTAL / 10, 60 + 195])
    assert energy["domains"]["n1"]["rapl:package-0"]["joules"] == pytest.approx(600)
    assert energy["sources"] == ["nvml", "rapl"] and energy["phases"] == {}
    metrics = energy_metrics(energy, 12.0)
    assert metrics["energy_delay_product"]["value"] == pytest.approx(12 * TOTAL)
    assert metrics["energy"]["unit"] == "J" and "energy_per_sample" not in metrics
    assert energy_metrics(nothing("switched off", None), 10.0) == energy_metrics(None, 1) == {}


def test_phases(tmp_path: Path) -> None:
    spans = [
        ("import", START, START + 2), ("training", START + 2, START + 4.5),
        ("validation", START + 4.5, START + 5.5), ("training", START + 5.5, START + 8),
        ("blink", START + 8, START + 8.2), ("validation", START + 8.2, START + 9.2),
    ]  # fmt: skip
    work = {"samples": 1000, "phases": ["training", "validation"]}
    energy = energy_of([traced(tmp_path)], 1, WINDOW, spans, work)
    assert set(energy["phases"]) == {"import", "training", "validation"}  # blink is no interval
    assert energy["phases"]["import"] == pytest.approx(60 * 2 + 100 * 2 + 10 * 4 / 2)
    # Symmetric about 5 s, where the ramp is at 150 W.
    assert energy["phases"]["training"] == pytest.approx((60 + 150) * 5)
    per_sample = (energy["phases"]["training"] + energy["phases"]["validation"]) / 1000
    assert energy["joules_per_sample"] == pytest.approx(per_sample)
    assert energy_metrics(energy, 10.0)["energy_per_sample"]["value"] == pytest.approx(per_sample)


def test_hosts_add_up_and_all_must_tell(tmp_path: Path) -> None:
    both = [traced(tmp_path, host=host) for host in ("n1", "n2")]
    energy = energy_of(both, 2, WINDOW)
    assert energy["joules"] == pytest.approx(2 * TOTAL) and energy["hosts"] == ["n1", "n2"]
    assert energy["peak_watts"] == pytest.approx(2 * 255) and not energy["notes"]
    both[1] |= {"missing": "no counter on host n2", "series": {}}
    energy = energy_of(both, 2, WINDOW, [("a", START, START + 5)])
    assert energy["joules"] is None and energy["missing"] == "no counter on host n2"
    assert energy["phases"] == {}


@pytest.mark.parametrize("part", ["dram", "package"])
def test_what_never_changes_measures_nothing(tmp_path: Path, part: str) -> None:
    still = PACKAGE._replace(name="rapl:other", part=part)
    rows = [*ROWS, *((second, still.name, 4711) for second in range(11))]
    energy = energy_of([traced(tmp_path, [*DOMAINS, still], rows)], 1, WINDOW)
    if part == "dram":  # of a processor that does not count it
        assert energy["joules"] == pytest.approx(TOTAL)
        assert energy["notes"] == ["n1: rapl:other does not change and is left out"]
        assert not energy["domains"]["n1"]["rapl:other"]["counted"]
    else:
        assert energy["joules"] is None and energy["missing"] == "rapl:other of n1 does not change"


@pytest.mark.parametrize("place", ["end", "begin", "middle"])
def test_a_counter_that_stops_is_no_power(tmp_path: Path, place: str) -> None:
    curves = {
        "end": lambda t: min(t, 2.5), "begin": lambda t: max(t, 2.5),
        "middle": lambda t: t if t <= 2 else max(2.0, t - 2),
    }  # fmt: skip
    times = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.5)
    rows = [(t, PACKAGE.name, 100 * curves[place](t) + 7) for t in times]
    energy = energy_of([traced(tmp_path, [PACKAGE], rows)], 1, (START, START + 5.5))
    assert energy["joules"] is None and "stood still" in energy["missing"]
