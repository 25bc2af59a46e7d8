"""Measured peaks of memory."""

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.config.memory import Memory
from scalesweep.tables.points import ExperimentData

# Bytes of the units that a peak may be in.
_UNITS = {"bytes": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "MiB": 2.0**20, "GiB": 2.0**30}


def peak_bytes(data: ExperimentData, memory: Memory) -> Floats | None:
    """Bytes of the measured peak of each row of the summary: of the first metric that there is."""
    for name in memory.peaks:
        quantity = data.quantities.get(name)
        if quantity is not None and quantity.unit in _UNITS:
            numbers = data.numbers(name, "mean", "run")
            if np.isfinite(numbers).any():
                return np.asarray(numbers * _UNITS[quantity.unit])
    return None
