"""Power and energy: a sampler next to the program, and what its samples say.

Standard library only, and nothing of it is imported in front of the runs: docs/guide/energy.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any


def nothing(why: str, interval_s: float | None, hosts: Sequence[str] = ()) -> dict[str, Any]:
    """The record's ``energy`` where nothing was measured, and why."""
    return {
        "sources": [], "interval_s": interval_s, "hosts": list(hosts), "missing": why,
        "domains": {}, "joules": None, "seconds": None, "mean_watts": None, "peak_watts": None,
        "phases": {}, "joules_per_sample": None, "sampler_cpu_s": 0.0, "samples": 0, "notes": [],
    }  # fmt: skip


def energy_metrics(energy: Mapping[str, Any] | None, wall_s: float | None) -> dict[str, Any]:
    """Plain metrics of a record's ``energy``; none where it has no joules."""
    if not energy or energy["joules"] is None:
        return {}
    joules = energy["joules"]
    values = {
        "energy": (joules, "J"),
        "energy_per_sample": (energy["joules_per_sample"], "J"),
        "energy_delay_product": (None if wall_s is None else joules * wall_s, "J s"),
        "mean_power": (energy["mean_watts"], "W"),
        "peak_power": (energy["peak_watts"], "W"),
    }
    return {
        name: {"value": value, "unit": unit, "better": "lower", "scope": "total"}
        for name, (value, unit) in values.items()
        if value is not None
    }
