"""What a probe measured within a run, as its row of the summary keeps it."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.core.errors import UserError

SWEEP = "_sweep"  # column of the summary
SECONDS = "sweep_seconds"  # array of the samples, [value, repeat, rank]


def sweep_text(record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]) -> str | None:
    """The sweep of a run as JSON text for the summary; None where it is no probe's.

    By value: seconds of the slowest rank, the best, median and worst of the repeats. Raises
    UserError where times and values do not go together.
    """
    note = (record.get("notes") or {}).get("sweep")
    if note is None or SECONDS not in samples:
        return None
    seconds = samples[SECONDS]
    columns = {name: note.get(name) for name in ("values", "amounts")}
    if (
        seconds.ndim != 3
        or not (seconds > 0).all()
        or {len(seconds)} != {len(column or ()) for column in columns.values()}
    ):
        raise UserError(f"{SECONDS} does not go with notes.sweep: [value, repeat, rank] in seconds")
    slowest = seconds.max(axis=2)
    times = np.stack([slowest.min(axis=1), np.median(slowest, axis=1), slowest.max(axis=1)], axis=1)
    also = ("by", "unit", "amount_unit", "collective", "moved")
    named = {name: note.get(name) for name in also}
    return json.dumps({**named, **columns, "times": times.tolist()})
