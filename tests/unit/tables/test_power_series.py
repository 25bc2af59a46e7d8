"""Reading power.csv back: energy between two times, means, holes and damaged files."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.compute.power.counters import Domain
from scalesweep.compute.power.energy import energy_of, power_table, series_of
from scalesweep.core.record import BadRecordError
from scalesweep.tables.power_series import Channel, mean_power, read_power
from tests.fakes.training import BEGAN


def power_file(folder: Path, rows: list[tuple[float, str, str, Any]]) -> Path:
    path = folder / "power.csv"
    lines = ["time,host,domain,watts"]
    for second, host, domain, watts in rows:
        stamp = pd.Timestamp(BEGAN + second, unit="s", tz="UTC").isoformat(timespec="milliseconds")
        lines.append(f"{stamp},{host},{domain},{'' if watts is None else watts}")
    path.write_text("\n".join(lines) + "\n")
    return path


COUNTED = {"domains": {"n": {"p": {"joules": 1.0, "counted": True}}}}


def energy_between(power: list[Channel], begin: float, end: float) -> float | None:
    """Joules over the counted channels; None if one was not watched."""
    counted = [channel for channel in power if channel.counted]
    watts = float(mean_power(counted, np.array([begin, end]))[0])
    return watts * (end - begin) if counted and math.isfinite(watts) else None


def test_what_was_not_watched_is_missing(tmp_path: Path) -> None:
    rows = [(0, "n", "p", None), (1, "n", "p", 10), (5, "n", "p", None), (6, "n", "p", 10)]
    channels = read_power(power_file(tmp_path, rows), COUNTED)
    assert energy_between(channels, BEGAN, BEGAN + 1) == pytest.approx(10)
    assert energy_between(channels, BEGAN, BEGAN + 6) is None
    assert energy_between(channels, BEGAN - 2, BEGAN + 1) is None
    watts = mean_power(channels, BEGAN + np.array([0.0, 1.0, 5.0, 6.0]))
    assert watts[[0, 2]].tolist() == pytest.approx([10, 10]) and math.isnan(watts[1])
    assert energy_between(read_power(tmp_path / "power.csv", {}), BEGAN, BEGAN + 1) is None


def test_power_is_read_as_the_sampler_counted_it(tmp_path: Path) -> None:
    package = Domain("rapl:package-0", "rapl", "package", "counter", 262_143.0)
    gpu = Domain("nvml:gpu0", "nvml", "gpu", "power")
    core = Domain("rapl:core", "rapl", "core", "counter", 262_143.0)
    passed = 0.9 * np.arange(12)
    values = {package: 70 * passed**1.3, gpu: 100 + 9 * passed, core: 30 * passed}
    series = {
        domain.name: series_of(domain, np.column_stack([BEGAN + passed, each]), 1.0)
        for domain, each in values.items()
    }
    host = {
        "host": "n0", "interval_s": 1.0, "series": series, "missing": None, "refused": {},
        "failed": {}, "samples": 12, "cpu_s": 0.1,
    }  # fmt: skip
    spans = [("import", BEGAN + 0.3, BEGAN + 2.2), ("training", BEGAN + 2.2, BEGAN + 8.0)]
    energy = energy_of([host], 1, (BEGAN, BEGAN + 9.9), spans)
    (tmp_path / "power.csv").write_text(power_table([host]))
    channels = read_power(tmp_path / "power.csv", energy)
    assert sorted(c.domain for c in channels if c.counted) == ["nvml:gpu0", "rapl:package-0"]
    whole = energy_between(channels, BEGAN, BEGAN + 9.9)
    # Times are kept to the millisecond, watts to six digits.
    assert whole == pytest.approx(energy["joules"], rel=1e-4)
    for name, start, end in spans:
        read = energy_between(channels, start, end)
        assert read == pytest.approx(energy["phases"][name], rel=1e-3)


def test_changed_power_is_one_clear_line(tmp_path: Path) -> None:
    path = power_file(tmp_path, [(0, "n", "p", None), (1, "n", "p", 10)])
    with pytest.raises(BadRecordError, match=r"^power\.csv was changed"):
        read_power(path, {**COUNTED, "table": {"blake2b": "another"}})
    path.write_text("time,host\nnow,n\n")
    with pytest.raises(BadRecordError, match=r"^power\.csv is not a table of time, host, domain"):
        read_power(path, COUNTED)
    path.unlink()
    with pytest.raises(BadRecordError, match=r"^power\.csv cannot be read"):
        read_power(path, COUNTED)
