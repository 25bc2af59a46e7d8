"""The table `roofline`: what each layer of a model reaches of what the machine could do.

Ceilings are those of a node, shared equally by the ranks on it. Times are means over the repeats.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.roofline import (
    UNKNOWN,
    Reach,
    Roof,
    intensity,
    rated_flop,
    share_interval,
)
from scalesweep.analysis.stats import Interval, positive_interval
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.tables.ceilings import (
    DATASHEET,
    MEASURED,
    Ceiling,
    numbers_of,
    reach_of_least,
    roof_of,
)
from scalesweep.tables.layers import LAYERS, LayerTimes
from scalesweep.tables.points import ExperimentData, Point

STEP = "step"  # the row of the whole step, in the columns layer and kind
_MS = 1e3
_NUMBERS = (
    "flop", "bytes", "ms", "ms_low", "ms_high", "forward_ms", "of_layers", "flops",
    "intensity", "least_ms", "of_roof", "of_roof_low", "of_roof_high", "coverage",
)  # fmt: skip
_NAMES = ("layer", "kind", "count", "bound", "roof", *_NUMBERS)


def roofline_column(name: str, axes: Sequence[str]) -> str:
    """Column of the table: its name, unless a varying parameter has it."""
    return f"roofline_{name}" if name in axes else name


def roofline_table(
    data: ExperimentData, points: Sequence[Point], ceilings: Sequence[Ceiling]
) -> pd.DataFrame | None:
    """A row per point and kind of layer, and one for its whole step (``layer`` is ``step``).

    Columns: varying parameters, ``source``, ``repeats``, ``planned``, ``layer`` (name of the first
    of its kind), ``kind``, ``count`` (how many are the same), and of all of them together ``flop``
    and ``bytes`` (forward and backward), ``ms`` with bounds, ``forward_ms``, ``of_layers`` (share
    of the layers' sum), ``flops`` (FLOP/s), ``intensity`` (FLOP/byte). With ceilings: ``roof``
    (those of which kind), ``bound``, ``least_ms`` and ``of_roof`` = least_ms / ms; of the step with
    bounds, which hold the uncertainty of the ceilings too. The least time of layers without
    products (``analysis.roofline.PRODUCTS``) is that of their bytes. ``coverage`` is of the step:
    the layers' sum over it. None if no run has timed layers.
    """
    texts = data.texts(LAYERS)
    rows: list[dict[str, Any]] = []
    for point in points:
        runs = [LayerTimes.from_text(texts[row]) for row in point.rows.tolist() if texts[row]]
        alike = [run for run in runs if run.name == runs[0].name]
        if not alike:
            continue
        head = {**point.values, "source": point.source, "repeats": len(alike)}
        head["planned"] = point.planned
        for row in _rows(alike, *_roof(data, point, ceilings)):
            rows.append(head | {roofline_column(name, data.axes): v for name, v in row.items()})
    if not rows:
        return None
    columns = [*data.axes, "source", "repeats", "planned"]
    columns += [roofline_column(name, data.axes) for name in _NAMES]
    frame = pd.DataFrame({name: typed_values([row.get(name) for row in rows]) for name in columns})
    for name in _NUMBERS:
        title = roofline_column(name, data.axes)
        frame[title] = frame[title].astype(np.float64)
    frame.attrs["units"] = {}
    return frame


def _roof(
    data: ExperimentData, point: Point, ceilings: Sequence[Ceiling]
) -> tuple[Roof | None, str, Reach]:
    """The roof over a rank of a point, of which ceilings, and how far least times reach.

    Measured ones where both are there, else those of the data sheet; NaN says that the uncertainty
    is not known.
    """
    every = {**data.experiment["fixed"], **point.values}
    dtype = numbers_of(every)
    ranks = min(int(every["ranks"]), int(every.get("ranks_per_node") or 1))
    for stated in (MEASURED, DATASHEET):
        roof = roof_of(ceilings, stated, dtype)
        if roof is not None:
            return roof.shared(ranks), stated, reach_of_least(ceilings, stated, dtype)
    return None, "", UNKNOWN


def _rows(
    runs: Sequence[LayerTimes], roof: Roof | None, stated: str, reach: Reach
) -> list[dict[str, Any]]:
    first = runs[0]
    counts = np.array(first.count, np.float64)
    # [repeat, layer] of all layers of a kind, in s.
    both = np.array([run.both for run in runs]) * counts
    forward = np.array([run.forward for run in runs]) * counts
    launch_s = float(np.mean([run.launch for run in runs]))
    whole = both.mean(axis=0).sum()
    rows = []
    least = 0.0
    for place, name in enumerate(first.name):
        flop = first.flop_forward[place] + first.flop_backward[place]
        moved = first.bytes_forward[place] + first.bytes_backward[place]
        count = first.count[place]
        row = _timed(name, first.kind[place], count * flop, count * moved, both[:, place])
        row |= {"count": count, "forward_ms": float(forward[:, place].mean()) * _MS}
        row["of_layers"] = float(both[:, place].mean() / whole)
        if roof is not None:
            starts = 2 if first.flop_backward[place] or first.bytes_backward[place] else 1
            kind = first.kind[place]
            row["bound"] = roof.class_of_kind(kind, flop, moved, starts * launch_s)
            row["least_ms"] = count * roof.least_s(rated_flop(kind, flop), moved) * _MS
            row["of_roof"] = row["least_ms"] / row["ms"]
            row["roof"] = stated
            least += row["least_ms"]
        rows.append(row)
    steps = np.array([run.step for run in runs])
    row = _timed(STEP, STEP, sum(r["flop"] for r in rows), sum(r["bytes"] for r in rows), steps)
    row |= {"count": 1, "coverage": float((both.sum(axis=1) / steps).mean())}
    if roof is not None:
        row |= {"roof": stated, "least_ms": least, **_reached(least / _MS / steps, stated, reach)}
    return [*rows, row]


def _timed(name: str, kind: str, flop: float, moved: float, seconds: Floats) -> dict[str, Any]:
    mean = float(seconds.mean())
    bounds: Interval = positive_interval(seconds * _MS)
    return {
        "layer": name, "kind": kind, "flop": flop, "bytes": moved, "ms": mean * _MS,
        "ms_low": bounds.low, "ms_high": bounds.high, "flops": flop / mean,
        "intensity": intensity(flop, moved),
    }  # fmt: skip


def _reached(shares: Floats, stated: str, reach: Reach) -> dict[str, float]:
    """Least time over the step's, over the repeats, with the uncertainty of measured ceilings."""
    bounds = share_interval(shares, reach if stated == MEASURED else UNKNOWN)
    return {
        "of_roof": float(shares.mean()), "of_roof_low": bounds.low, "of_roof_high": bounds.high,
    }  # fmt: skip
