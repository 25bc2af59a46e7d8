"""Measured peaks of memory."""

import numpy as np

from scalesweep.analysis.metrics import BYTES
from scalesweep.analysis.types import Floats
from scalesweep.config.shapes import Memory
from scalesweep.tables.points import ExperimentData, Point


def peak_bytes(data: ExperimentData, memory: Memory) -> Floats | None:
    """Bytes of the measured peak of each row of the summary: of the first metric that there is."""
    for name in memory.peak:
        quantity = data.quantities.get(name)
        if quantity is not None and quantity.unit in BYTES:
            numbers = data.numbers(name, "mean", "run")
            known = np.isfinite(numbers) & (numbers > 0)  # 0 is what was not recorded
            if known.any():
                return np.where(known, numbers * BYTES[quantity.unit], np.nan)
    return None


def peak_of(peaks: Floats | None, point: Point) -> float | None:
    """The mean peak of a point's runs; None if one has none."""
    known = peaks is not None and point.rows.size and np.isfinite(peaks[point.rows]).all()
    return float(peaks[point.rows].mean()) if peaks is not None and known else None
