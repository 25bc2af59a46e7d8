"""The table ``phases``: where the seconds and, where known, the joules of a run go."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import units_with_bounds
from scalesweep.analysis.stats import mean_interval
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import Point, identity_columns
from scalesweep.tables.training_facts import knows_energy, texts_of, trains

# Phases in the order of a run; others follow.
PHASE_ORDER = (
    "import",
    "init",
    "data_staging",
    "data_loading",
    "preprocessing",
    "build",
    "broadcast",
    "warmup",
    "training",
    "timed",
    "validation",
    "evaluation",
    "teardown",
)


def in_order(phases: Iterable[str]) -> list[str]:
    """Phases in the order of a run, unknown ones last."""
    order = {name: place for place, name in enumerate(PHASE_ORDER)}
    return sorted(phases, key=lambda name: order.get(name, len(order)))


def phases_frame(inputs: TableInputs) -> pd.DataFrame | None:
    """A row per point and phase: seconds, their share of the run's phases and, where known, joules.

    ``runs`` counts the finished runs that had the phase, ``energy_runs`` those whose energy in it
    is known.
    """
    data, points = inputs.data, inputs.points
    if not trains(data) and not knows_energy(data):
        return None
    seconds, energy = texts_of(data, "_phases"), texts_of(data, "_energy")
    names = in_order(dict.fromkeys(name for values in seconds.values() for name in values))
    rows = list(_phase_rows(points, names, seconds, energy, data.level))
    if not rows:
        return None
    table = identity_columns(data.axes, [point for point, _ in rows])
    for key in rows[0][1]:
        values = [values[key] for _, values in rows]
        table[key] = typed_values(values) if key == "phase" else np.array(values)
    frame = pd.DataFrame(table)
    if not frame["energy_runs"].any():
        frame = frame.drop(columns=[name for name in frame if str(name).startswith("energy")])
    kinds = {"seconds": ("Time", "s"), "energy": ("Energy", "J")}
    columns = [name for name in frame.columns if name not in data.axes]
    frame.attrs["units"] = units_with_bounds(columns, kinds, "total")
    return frame


def _phase_rows(
    points: Sequence[Point],
    names: Sequence[str],
    seconds: Mapping[int, Mapping[str, float]],
    energy: Mapping[int, Mapping[str, float]],
    level: float,
) -> Iterator[tuple[Point, dict[str, Any]]]:
    """Each point with its seconds and joules in each phase: means over repeats, their intervals at
    ``level``, and shares of all phases.

    ``seconds`` and ``energy`` are by row of the summary and name of the phase.
    """

    def over_repeats(point: Point, numbers: Mapping[int, Mapping[str, float]], name: str) -> Floats:
        values = [numbers[row].get(name) for row in point.rows.tolist() if row in numbers]
        return np.array([value for value in values if value is not None], np.float64)

    # Of a run's phases together; none where all of them took no time.
    shares = {
        row: {name: value / sum(values.values()) for name, value in values.items()}
        for row, values in seconds.items()
        if sum(values.values()) > 0
    }
    for point in points:
        for name in names:
            times = over_repeats(point, seconds, name)
            joules = over_repeats(point, energy, name)
            if not times.size:
                continue
            mean, low, high = _interval(times, level)
            share, share_low, share_high = _interval(over_repeats(point, shares, name), level)
            used, used_low, used_high = _interval(joules, level)
            yield (
                point,
                {
                    "phase": name,
                    "runs": times.size,
                    "seconds": mean,
                    "seconds_low": low,
                    "seconds_high": high,
                    "share": share,
                    "share_low": share_low,
                    "share_high": share_high,
                    "energy_runs": joules.size,
                    "energy": used,
                    "energy_low": used_low,
                    "energy_high": used_high,
                },
            )


def _interval(values: Floats, level: float) -> tuple[float, float, float]:
    """Mean and its 95 % interval; NaN where there is none."""
    if not values.size:
        return (math.nan,) * 3
    interval = mean_interval(values, level)
    return float(values.mean()), interval.low, interval.high


MAKERS = (Maker("phases", phases_frame),)
