"""The table `parts`: where the time of profiled runs goes, by named part of the program.

Parts are named by regular expressions in benchmark.yaml (docs/guide/profiles.md); what no pattern
takes is ``other``.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import units_with_bounds
from scalesweep.analysis.profile import OTHER
from scalesweep.analysis.stats import mean_interval
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.tables.epoch_curves import PARTS
from scalesweep.tables.points import ExperimentData, Point, identity_columns


def part_table(data: ExperimentData, points: Sequence[Point]) -> pd.DataFrame | None:
    """A row per point and part: seconds of a rank and their share of all parts, over the repeats.

    A part that a point does not have is 0 of it: a profile lists what took time. None where no run
    has parts.
    """
    texts = data.texts(PARTS)
    parts_of_row = {
        row: json.loads(texts[row]) for row in data.row_of.values() if texts[row] is not None
    }
    names = sorted(
        {name for parts in parts_of_row.values() for name in parts}, key=lambda n: (n == OTHER, n)
    )
    rows = [
        (point, values)
        for point in points
        if (of_point := [parts_of_row[row] for row in point.rows.tolist() if row in parts_of_row])
        for values in _rows(of_point, names)
    ]
    if not rows:
        return None
    table = identity_columns(data.axes, [point for point, _ in rows])
    for key in rows[0][1]:
        table[key] = typed_values([values[key] for _, values in rows])
    frame = pd.DataFrame(table)
    kinds = {"seconds": ("Time per rank", "s"), "share": ("Share of time", "1")}
    columns = [name for name in frame.columns if name not in data.axes]
    frame.attrs["units"] = units_with_bounds(columns, kinds, "rank")
    return frame


def _rows(runs: Sequence[Mapping[str, float]], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    totals = np.array([sum(parts.values()) for parts in runs])
    for name in names:
        seconds = np.array([parts.get(name, 0.0) for parts in runs])
        there = totals > 0
        shares: Floats = seconds[there] / totals[there]
        yield {
            "part": name,
            "runs": len(runs),
            **_over(seconds, "seconds"),
            **_over(shares, "share"),
        }


def _over(values: Floats, name: str) -> dict[str, float]:
    """Mean and its 95 % interval over the repeats."""
    mean = float(values.mean()) if values.size else math.nan
    # Nothing in any repeat is no measurement of a spread.
    span = mean_interval(values) if values.any() else mean_interval(values[:1])
    return {name: mean, f"{name}_low": span.low, f"{name}_high": span.high}
