"""Means and deviations of a run's times per epoch and rank, and what they say of the warm-up."""

import math
from collections.abc import Mapping

from scalesweep.analysis.metrics import EPOCH_METRICS, EPOCH_PHASES, column
from scalesweep.analysis.stats import epoch_stats
from scalesweep.analysis.steady_state import steady_state
from scalesweep.analysis.types import Floats

EPOCH_COLUMNS = tuple(
    column(metric, stat, phase)
    for metric in EPOCH_METRICS
    for phase in EPOCH_PHASES
    for stat in ("mean", "std")
)


def epoch_quantities(
    times: Mapping[str, Floats], samples: int | None, size: int | None
) -> tuple[dict[str, float], str | None]:
    """``EPOCH_COLUMNS`` of a run, NaN where missing, and a warning if the epochs are not steady
    from the second on.

    ``times``: ``local_times`` and ``global_times`` ``[epoch, rank]`` in s, as far as there are any;
    ``samples`` and ``size`` (bytes) are those of an epoch. Raises ValueError if a quantity is not
    finite.
    """
    local, total = times.get("local_times"), times.get("global_times")
    values: dict[str, Floats] = {}
    if local is not None:
        values["local_time"] = local
        if samples is not None:
            values["local_throughput"] = samples / (local.shape[1] * local)
    if total is not None:
        values["total_time"] = total
        if samples is not None:
            values["total_throughput"] = samples / total
        if size is not None:
            values["read_rate"] = size / total
    quantities = dict.fromkeys(EPOCH_COLUMNS, math.nan)
    for metric, array in values.items():
        for phase, taken in zip(EPOCH_PHASES, (array[:1], array[1:]), strict=True):
            if taken.size:
                for stat, value in zip(("mean", "std"), epoch_stats(taken), strict=True):
                    quantities[column(metric, stat, phase)] = float(value)
    whole = local if total is None else total
    if whole is None or len(whole) < 2 or not (message := steady_state(whole, 1).message):
        return quantities, None
    words = message.replace("values", "epochs")
    return quantities, f"{words}; raise epochs, so that those before weigh less"
