"""Measured peaks of memory."""

import numpy as np

from scalesweep.analysis.metrics import BYTES
from scalesweep.analysis.types import Floats
from scalesweep.config.shapes import Memory
from scalesweep.tables.points import ExperimentData


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
